-- Completes every job of the batches $7, if nothing of them has been settled yet, and takes up to $1 new jobs behind the mark ($3, $4)
-- for $2 microseconds: finish.sql and claim_new.sql in one, for several workers. Of the jobs, those from place $8[i] (from 0) to the next
-- are batch $5[i] on behalf of worker $6[i]. One row comes back even if there was no job, since each says how many batches were held.
WITH gone AS (
    DELETE FROM lease WHERE batch = ANY ($7::bigint[]) AND settled = '{}' RETURNING batch
), kept AS (
    INSERT INTO finished (at, batch, status) SELECT statement_timestamp(), batch, 'completed' FROM gone
), taken AS (
    DELETE FROM ready
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ready
        WHERE (rank, id) > ($3::integer, $4::bigint)
        ORDER BY rank, id
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING *
), share AS MATERIALIZED (
    SELECT *, width_bucket(row_number() OVER () - 1, $8::bigint[]) AS part FROM taken
), made AS (
    INSERT INTO batch (id, worker, items)
    SELECT ($5::bigint[])[part], ($6::integer[])[part],
        array_agg(ROW(id, rank, type, payload, 0, max_retries, created_at, created_at, NULL, NULL)::job)
    FROM share
    GROUP BY part
    RETURNING id, cardinality(items) AS size
), leased AS (
    INSERT INTO lease (batch, until, size)
    SELECT id, statement_timestamp() + $2::bigint * interval '1 microsecond', size FROM made
)
SELECT held.count AS "held!", share.part AS "part?", share.id AS "id?", share.rank AS "rank?", share.type AS "kind?: Text",
    share.payload AS "payload?: Text", share.max_retries AS "max_retries?", share.created_at AS "created?: Stamp",
    statement_timestamp() AS "now!: Stamp"
FROM (SELECT count(*) FROM gone) AS held LEFT JOIN share ON true
