-- Every job as it stands. Whoever is still 'running' is claimed by a worker that is gone.
SELECT
    id,
    status,
    discarded_why,
    retries,
    (extract(epoch FROM schedule_at - created_at) * 1000000)::bigint AS "last_due_us!"
FROM jobs
ORDER BY id
