-- Takes expired claims away from whoever holds them, at the price of one retry each. Jobs without retries left are
-- given up, so that a job which kills its worker ends too.
WITH expired AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE status = 'running' AND lease_until <= statement_timestamp()
    ORDER BY lease_until
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs
SET status = CASE WHEN retries < max_retries THEN 'available' ELSE 'discarded' END,
    retries = least(retries + 1, max_retries),
    schedule_at = CASE WHEN retries < max_retries THEN statement_timestamp() ELSE schedule_at END,
    last_delay_ns = CASE WHEN retries < max_retries THEN 0 ELSE last_delay_ns END,
    failure = 'lease expired',
    discarded_why = CASE WHEN retries < max_retries THEN NULL ELSE 'exhausted' END,
    finished_at = CASE WHEN retries < max_retries THEN NULL ELSE statement_timestamp() END,
    lease_token = NULL,
    lease_until = NULL
FROM expired
WHERE jobs.id = expired.id
RETURNING (jobs.status = 'discarded') AS "discarded!"
