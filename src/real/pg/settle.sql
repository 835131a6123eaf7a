-- Ends claims: job $1[i] under token $2[i] is completed, retried $4[i] nanoseconds from now, discarded because of $5[i], or
-- released, as $3[i] says; $6[i] is what went wrong. Fenced by the token: a claim that a newer one has superseded changes nothing. The
-- tokens that come back are settled, by this statement or by an earlier sending of it; the others are lost.
WITH settlement AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[])
        AS s (id, token, how, delay_ns, why, failure)
), changed AS (
    UPDATE jobs
    SET status = CASE settlement.how
            WHEN 'complete' THEN 'completed'
            WHEN 'discard' THEN 'discarded'
            WHEN 'retry' THEN CASE WHEN settlement.delay_ns > 0 THEN 'retryable' ELSE 'available' END
            ELSE 'available'
        END,
        retries = jobs.retries + CASE WHEN settlement.how = 'retry' THEN 1 ELSE 0 END,
        schedule_at = CASE WHEN settlement.how = 'retry'
            THEN statement_timestamp() + ceil(settlement.delay_ns / 1000.0)::float8 * interval '1 microsecond'
            ELSE jobs.schedule_at
        END,
        last_delay_ns = CASE WHEN settlement.how = 'retry' THEN settlement.delay_ns ELSE jobs.last_delay_ns END,
        failure = coalesce(settlement.failure, jobs.failure),
        discarded_why = settlement.why,
        finished_at = CASE WHEN settlement.how IN ('complete', 'discard') THEN statement_timestamp() END,
        lease_until = NULL
    FROM settlement
    WHERE jobs.id = settlement.id AND jobs.lease_token = settlement.token AND jobs.status = 'running'
    RETURNING jobs.lease_token
)
SELECT lease_token AS "token!" FROM changed
UNION ALL
SELECT jobs.lease_token
FROM jobs JOIN settlement ON jobs.id = settlement.id AND jobs.lease_token = settlement.token
WHERE jobs.status <> 'running'
