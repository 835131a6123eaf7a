-- Takes up to $1 new jobs behind the mark ($3, $4) for $2 microseconds, as batch $5 on behalf of worker $6. For when no retry can be
-- due: what is left of claim.sql then, for one worker.
WITH taken AS (
    DELETE FROM ready
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ready
        WHERE (rank, id) > ($3::integer, $4::bigint)
        ORDER BY rank, id
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING *
), made AS (
    INSERT INTO batch (id, worker, items)
    SELECT $5, $6, array_agg(ROW(id, rank, type, payload, 0, max_retries, created_at, created_at, NULL, NULL)::job)
    FROM taken
    HAVING count(*) > 0
    RETURNING cardinality(items) AS size
), leased AS (
    INSERT INTO lease (batch, until, size)
    SELECT $5, statement_timestamp() + $2::bigint * interval '1 microsecond', size FROM made
)
SELECT id, rank, type AS "kind: Text", payload AS "payload: Text", max_retries, created_at AS "created: Stamp",
    statement_timestamp() AS "now!: Stamp"
FROM taken
