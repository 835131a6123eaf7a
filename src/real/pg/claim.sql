-- Takes up to $1 due jobs for $2 microseconds. New jobs come from `ready`, behind the mark ($3, $4), by rank (minus the priority), then
-- number; retries from `scheduled`, of each rank the longest due, at equal times the lower number; of both, the best $1 by rank, then number. Rows that another claim
-- holds are passed over. Of the jobs, in whatever order, those from place $7[i] (from 0) to the next are
-- batch $5[i] on behalf of worker $6[i]. One row
-- comes back even if there was no job, since each also says when the next retry is due.
WITH RECURSIVE first AS (
    -- Of each rank the retry that has been due longest, or will be due first: one look at the index for each.
    (SELECT rank, schedule_at FROM scheduled ORDER BY rank, schedule_at LIMIT 1)
    UNION ALL
    SELECT next.rank, next.schedule_at
    FROM first CROSS JOIN LATERAL (
        SELECT rank, schedule_at FROM scheduled WHERE scheduled.rank > first.rank ORDER BY rank, schedule_at LIMIT 1
    ) AS next
), level AS MATERIALIZED (
    SELECT rank, schedule_at, schedule_at <= statement_timestamp() AS is_due FROM first
), fresh AS MATERIALIZED (
    SELECT ctid, rank, id FROM ready
    WHERE (rank, id) > ($3::integer, $4::bigint)
    ORDER BY rank, id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), waited AS MATERIALIZED (
    SELECT due.ctid, due.rank, due.id
    FROM (SELECT rank FROM level WHERE is_due) AS level CROSS JOIN LATERAL (
        SELECT scheduled.ctid, scheduled.rank, scheduled.id FROM scheduled
        WHERE scheduled.rank = level.rank AND schedule_at <= statement_timestamp()
        ORDER BY schedule_at, id
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
), taken AS (
    SELECT id, rank, type, payload, 0 AS retries, max_retries, created_at, created_at AS schedule_at, NULL::bigint AS last_delay_ns,
        NULL::text AS failure, true AS is_fresh
    FROM from_ready
    UNION ALL
    SELECT id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure, false FROM from_scheduled
), share AS MATERIALIZED (
    SELECT *, width_bucket(row_number() OVER () - 1, $7::bigint[]) AS part FROM taken
), made AS (
    INSERT INTO batch (id, worker, items)
    SELECT ($5::bigint[])[part], ($6::integer[])[part],
        array_agg(ROW(id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)::job)
    FROM share
    GROUP BY part
    RETURNING id, cardinality(items) AS size
), leased AS (
    INSERT INTO lease (batch, until, size)
    SELECT id, statement_timestamp() + $2::bigint * interval '1 microsecond', size FROM made
), later AS (
    SELECT min(CASE WHEN level.is_due THEN (
        SELECT schedule_at FROM scheduled
        WHERE scheduled.rank = level.rank AND schedule_at > statement_timestamp()
        ORDER BY schedule_at
        LIMIT 1
    ) ELSE level.schedule_at END) AS due
    FROM level
)
SELECT later.due AS "next_due?: Stamp", statement_timestamp() AS "now!: Stamp",
    share.part AS "part?", share.id AS "id?", share.rank AS "rank?", share.is_fresh AS "is_fresh?", share.type AS "kind?: Text",
    share.payload AS "payload?: Text", share.retries AS "retries?", share.max_retries AS "max_retries?",
    share.last_delay_ns AS "last_delay_ns?", share.created_at AS "created?: Stamp", share.schedule_at AS "due?: Stamp"
FROM later LEFT JOIN share ON true
