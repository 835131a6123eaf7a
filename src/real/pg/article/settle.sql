-- The end of job $1, in the transaction that claimed it: completed, retried $3 nanoseconds from now, failed because of $4, or released,
-- as $2 says; $5 is what went wrong.
UPDATE article
SET status = CASE $2::text WHEN 'complete' THEN 'completed' WHEN 'discard' THEN 'failed' ELSE 'pending' END,
    retries = retries + CASE $2::text WHEN 'retry' THEN 1 ELSE 0 END,
    schedule_at = CASE $2::text
        WHEN 'retry' THEN statement_timestamp() + ceil($3::bigint / 1000.0)::float8 * interval '1 microsecond'
        ELSE schedule_at
    END,
    last_delay_ns = CASE $2::text WHEN 'retry' THEN $3::bigint ELSE last_delay_ns END,
    why = $4,
    failure = coalesce($5, failure),
    finished_at = CASE WHEN $2::text IN ('complete', 'discard') THEN statement_timestamp() END
WHERE id = $1
