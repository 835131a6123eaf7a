-- Takes up to $1 due jobs for $2 microseconds on behalf of worker $3, and puts them under leases of at most $4 jobs each. New jobs
-- come from `ready`, by rank (minus the priority), then number; retries from `scheduled`, of each rank the longest due; of both, the best $1 by rank,
-- then number. Rows that another claim holds are passed over. One row comes back even if there was no job, since each also says how long
-- until the next retry is due.
WITH RECURSIVE step AS (
    (SELECT rank FROM scheduled ORDER BY rank LIMIT 1)
    UNION ALL
    SELECT (SELECT next.rank FROM scheduled AS next WHERE next.rank > step.rank ORDER BY next.rank LIMIT 1)
    FROM step
    WHERE step.rank IS NOT NULL
), level AS MATERIALIZED (
    SELECT rank FROM step WHERE rank IS NOT NULL
), fresh AS MATERIALIZED (
    SELECT ctid, rank, id FROM ready
    ORDER BY rank, id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), waited AS MATERIALIZED (
    SELECT due.ctid, due.rank, due.id
    FROM level CROSS JOIN LATERAL (
        SELECT scheduled.ctid, scheduled.rank, scheduled.id FROM scheduled
        WHERE scheduled.rank = level.rank AND schedule_at <= statement_timestamp()
        ORDER BY schedule_at
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    ) AS due
), best AS MATERIALIZED (
    SELECT ctid, true AS is_fresh, rank, id FROM fresh
    UNION ALL
    SELECT ctid, false, rank, id FROM waited
    ORDER BY rank, id
    LIMIT $1
), from_ready AS (
    DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT ctid FROM best WHERE is_fresh)) RETURNING ready.*
), from_scheduled AS (
    DELETE FROM scheduled WHERE ctid = ANY (ARRAY(SELECT ctid FROM best WHERE NOT is_fresh)) RETURNING scheduled.*
), taken AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY rank, id) - 1 AS place
    FROM (SELECT *, true AS is_fresh FROM from_ready UNION ALL SELECT *, false FROM from_scheduled) AS both_kinds
), part AS MATERIALIZED (
    SELECT part, nextval('lease_numbers') AS lease FROM (SELECT DISTINCT place / $4 AS part FROM taken) AS parts
), leased AS (
    INSERT INTO lease (id, worker, until, items)
    SELECT part.lease, $3, statement_timestamp() + $2::bigint * interval '1 microsecond',
        array_agg(ROW(id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)::job)
    FROM taken JOIN part ON part.part = taken.place / $4
    GROUP BY part.lease
), later AS (
    SELECT min(first.due) AS due
    FROM level CROSS JOIN LATERAL (
        SELECT schedule_at AS due FROM scheduled
        WHERE scheduled.rank = level.rank AND schedule_at > statement_timestamp()
        ORDER BY schedule_at
        LIMIT 1
    ) AS first
)
SELECT
    part.lease AS "lease?",
    taken.place AS "place?",
    taken.id AS "id?",
    taken.rank AS "rank?",
    taken.is_fresh AS "is_fresh?",
    taken.type AS "kind?",
    taken.payload AS "payload?",
    taken.retries AS "retries?",
    taken.max_retries AS "max_retries?",
    taken.last_delay_ns AS "last_delay_ns?",
    (extract(epoch FROM statement_timestamp() - taken.created_at) * 1000000)::bigint AS "age_us?",
    (extract(epoch FROM statement_timestamp() - taken.schedule_at) * 1000000)::bigint AS "lag_us?",
    (extract(epoch FROM later.due - statement_timestamp()) * 1000000)::bigint AS "next_due_us?"
FROM later LEFT JOIN (taken JOIN part ON part.part = taken.place / $4) ON true
ORDER BY taken.place
