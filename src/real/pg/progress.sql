-- Whether no job is waiting or running: three probes of three small indexes.
SELECT NOT EXISTS (SELECT FROM jobs WHERE status = 'available')
    AND NOT EXISTS (SELECT FROM jobs WHERE status = 'retryable')
    AND NOT EXISTS (SELECT FROM jobs WHERE status = 'running') AS "idle!"
