-- Takes expired leases away from whoever holds them, at the price of one retry for each job. Jobs without retries left are
-- given up, so that a job which kills its worker ends too.
WITH expired AS MATERIALIZED (
    SELECT id FROM lease
    WHERE until <= statement_timestamp()
    ORDER BY id
    LIMIT 100
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM lease WHERE id = ANY (ARRAY(SELECT id FROM expired)) RETURNING items
), item AS MATERIALIZED (
    SELECT i.* FROM gone CROSS JOIN LATERAL unnest(gone.items) AS i
), returned AS (
    INSERT INTO scheduled
    SELECT id, rank, type, payload, retries + 1, max_retries, created_at, statement_timestamp(), 0, 'lease expired'
    FROM item
    WHERE retries < max_retries
), given_up AS (
    INSERT INTO finished (at, status, why, items)
    SELECT statement_timestamp(), 'discarded', 'exhausted', array_agg(
        ROW(id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, 'lease expired')::job)
    FROM item
    WHERE retries >= max_retries
    HAVING count(*) > 0
)
SELECT
    count(*) FILTER (WHERE retries < max_retries) AS "returned!",
    count(*) FILTER (WHERE retries >= max_retries) AS "discarded!"
FROM item
