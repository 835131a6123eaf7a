-- The jobs of those of the batches $1 that are there and untouched, exclusive for $2 microseconds from now: what claims took whose answer
-- was lost.
WITH held AS (
    UPDATE lease SET until = statement_timestamp() + $2::bigint * interval '1 microsecond'
    WHERE batch = ANY ($1::bigint[]) AND settled = '{}'
    RETURNING batch
)
SELECT batch.id AS "batch!", i.id AS "id!", i.rank AS "rank!", i.type AS "kind!: Text", i.payload AS "payload!: Text",
    i.retries AS "retries!", i.max_retries AS "max_retries!", i.last_delay_ns, i.created_at AS "created!: Stamp",
    i.schedule_at AS "due!: Stamp", statement_timestamp() AS "now!: Stamp"
FROM held JOIN batch ON batch.id = held.batch CROSS JOIN LATERAL unnest(batch.items) AS i
