-- Takes expired leases away from whoever holds them, at the price of one retry for each job. Jobs without retries left are
-- given up, so that a job which kills its worker ends too.
WITH overdue AS MATERIALIZED (
    SELECT batch FROM lease
    WHERE until <= statement_timestamp()
    ORDER BY batch
    LIMIT 100
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM lease WHERE batch = ANY (ARRAY(SELECT batch FROM overdue)) RETURNING batch, settled
), item AS MATERIALIZED (
    SELECT batch.id AS batch, i.*
    FROM gone JOIN batch ON batch.id = gone.batch CROSS JOIN LATERAL unnest(batch.items) AS i (
        job, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure
    )
    WHERE i.job <> ALL (gone.settled)
), noted AS (
    INSERT INTO expired (batch, jobs) SELECT batch, array_agg(job) FROM item GROUP BY batch
), returned AS (
    INSERT INTO scheduled (id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)
    SELECT job, rank, type, payload, retries + 1, max_retries, created_at, statement_timestamp(), 0, 'lease expired'
    FROM item
    WHERE retries < max_retries
), given_up AS (
    INSERT INTO finished (at, batch, status, why, jobs, failures)
    SELECT statement_timestamp(), batch, 'discarded', 'exhausted', array_agg(job), array_agg('lease expired'::text)
    FROM item
    WHERE retries >= max_retries
    GROUP BY batch
)
SELECT
    count(*) FILTER (WHERE retries < max_retries) AS "returned!",
    count(*) FILTER (WHERE retries >= max_retries) AS "discarded!"
FROM item
