-- Of jobs $2[i] of batches $1[i], which are no longer held, those whose lease ran out before they were settled. The others were settled,
-- by this or an earlier try. A batch that nobody knows was claimed by a transaction that a failing server has forgotten.
SELECT s.batch AS "batch!", s.job AS "job!"
FROM unnest($1::bigint[], $2::bigint[]) AS s (batch, job)
LEFT JOIN batch ON batch.id = s.batch
LEFT JOIN expired ON expired.batch = s.batch
WHERE batch.id IS NULL OR s.job = ANY (expired.jobs)
