-- Jobs whose delay is over become available. Those that another worker is promoting are left to it.
UPDATE jobs
SET status = 'available'
WHERE id = ANY (ARRAY(
    SELECT id FROM jobs
    WHERE status = 'retryable' AND schedule_at <= statement_timestamp()
    ORDER BY schedule_at
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
))
