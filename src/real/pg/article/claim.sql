-- The article's claim: one due job, by priority, then age, locked for as long as the transaction lasts.
SELECT id, type AS kind, payload, retries, max_retries, last_delay_ns,
    (extract(epoch FROM statement_timestamp() - created_at) * 1000000)::bigint AS "age_us!",
    (extract(epoch FROM statement_timestamp() - schedule_at) * 1000000)::bigint AS "lag_us!"
FROM article
WHERE status = 'pending' AND schedule_at <= statement_timestamp()
ORDER BY priority DESC, created_at, id
LIMIT 1
FOR UPDATE SKIP LOCKED
