-- Takes up to $1 new jobs behind the mark ($4, $5) for $2 microseconds on behalf of worker $3, under one lease. For when no retry can
-- be due: what is left of claim.sql then.
WITH taken AS (
    DELETE FROM ready
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM ready
        WHERE (rank, id) > ($4::integer, $5::bigint)
        ORDER BY rank, id
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING *
), leased AS (
    INSERT INTO lease (id, worker, until, items)
    SELECT nextval('lease_numbers'), $3, statement_timestamp() + $2::bigint * interval '1 microsecond',
        array_agg(ROW(id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)::job)
    FROM taken
    HAVING count(*) > 0
    RETURNING id
)
SELECT
    (SELECT id FROM leased) AS "lease!",
    id,
    rank,
    type AS kind,
    payload,
    retries,
    max_retries,
    last_delay_ns,
    (date_part('epoch', statement_timestamp() - created_at) * 1000000)::bigint AS "age_us!",
    (date_part('epoch', statement_timestamp() - schedule_at) * 1000000)::bigint AS "lag_us!"
FROM taken
