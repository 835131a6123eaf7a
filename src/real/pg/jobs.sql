-- Every job as it stands.
SELECT
    id AS "id!",
    status AS "status!",
    discarded_why AS "why?",
    retries AS "retries!",
    (extract(epoch FROM schedule_at - created_at) * 1000000)::bigint AS "last_due_us!"
FROM jobs
ORDER BY id
