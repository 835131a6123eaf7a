-- Whether no job is waiting or running.
SELECT NOT EXISTS (SELECT FROM ready)
    AND NOT EXISTS (SELECT FROM scheduled)
    AND NOT EXISTS (SELECT FROM lease)
    AND NOT EXISTS (SELECT FROM article WHERE status IN ('pending', 'processing')) AS "idle!"
