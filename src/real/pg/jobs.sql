-- Every job as it stands. Whoever is still 'running' is claimed by a worker that is gone.
SELECT id, status, discarded_why, retries FROM jobs ORDER BY id
