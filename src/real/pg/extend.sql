-- Makes the claims $1 (jobs) under $2 (tokens) last for $3 microseconds from now. Rows that are being settled at this moment are
-- passed over, so that the two never wait for each other. The tokens that come back are still held.
WITH held AS MATERIALIZED (
    SELECT jobs.id, jobs.lease_token, jobs.status
    FROM jobs JOIN unnest($1::bigint[], $2::bigint[]) AS claim (id, token)
        ON jobs.id = claim.id AND jobs.lease_token = claim.token
), locked AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE id IN (SELECT id FROM held) AND status = 'running'
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), extended AS (
    UPDATE jobs
    SET lease_until = statement_timestamp() + $3::bigint * interval '1 microsecond'
    FROM locked JOIN held USING (id)
    WHERE jobs.id = locked.id AND jobs.lease_token = held.lease_token AND jobs.status = 'running'
    RETURNING jobs.id
)
SELECT held.lease_token AS "token!" FROM held
WHERE (SELECT count(*) FROM extended) >= 0
