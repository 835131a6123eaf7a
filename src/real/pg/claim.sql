-- Takes up to $1 available jobs for $2 microseconds on behalf of worker $3: by priority, then age, then number. One row
-- comes back even if none was free, since each row also says how long until the next waiting job is due.
WITH next AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE status = 'available'
    ORDER BY priority DESC, created_at, id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE jobs
    SET status = 'running',
        worker = $3,
        lease_token = nextval('lease_tokens'),
        lease_until = statement_timestamp() + $2::bigint * interval '1 microsecond'
    FROM next
    WHERE jobs.id = next.id
    RETURNING jobs.*
), waiting AS (
    SELECT min(schedule_at) AS due FROM jobs WHERE status = 'retryable'
)
SELECT
    taken.id AS "id?",
    taken.type AS "kind?",
    taken.payload AS "payload?",
    taken.lease_token AS "token?",
    taken.retries AS "retries?",
    taken.max_retries AS "max_retries?",
    taken.last_delay_ns AS "last_delay_ns?",
    (extract(epoch FROM statement_timestamp() - taken.created_at) * 1000000)::bigint AS "age_us?",
    (extract(epoch FROM statement_timestamp() - taken.schedule_at) * 1000000)::bigint AS "lag_us?",
    (extract(epoch FROM waiting.due - statement_timestamp()) * 1000000)::bigint AS "next_due_us?"
FROM waiting LEFT JOIN taken ON true
ORDER BY taken.priority DESC, taken.created_at, taken.id
