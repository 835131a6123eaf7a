-- Ends claims, as settlement number $2 of client $1: job $4[i] under lease $3[i] is completed, retried $6[i] nanoseconds from now,
-- discarded because of $7[i], or released, as $5[i] says; $8[i] is what went wrong. The jobs that come back were held; the others are
-- lost. Nothing comes back, and nothing is done, if this settlement was carried out before.
WITH settlement AS MATERIALIZED (
    SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::text[])
        AS s (lease, job, how, delay_ns, why, failure)
), held AS MATERIALIZED (
    SELECT id, items FROM lease WHERE id = ANY ($3::bigint[]) ORDER BY id FOR UPDATE
), item AS MATERIALIZED (
    SELECT held.id AS lease, i.id, i.rank, i.type, i.payload, i.retries, i.max_retries, i.created_at, i.schedule_at, i.last_delay_ns,
        coalesce(settlement.failure, i.failure) AS failure, settlement.how, settlement.delay_ns, settlement.why
    FROM held
    CROSS JOIN LATERAL unnest(held.items) AS i
    LEFT JOIN settlement ON settlement.lease = held.id AND settlement.job = i.id
), turn AS (
    INSERT INTO receipt AS last (client, number, lost)
    SELECT $1, $2, ARRAY(SELECT job FROM settlement WHERE NOT EXISTS (
        SELECT FROM item WHERE item.lease = settlement.lease AND item.id = settlement.job))
    ON CONFLICT (client) DO UPDATE SET number = excluded.number, lost = excluded.lost WHERE last.number < excluded.number
    RETURNING number
), rest AS MATERIALIZED (
    SELECT lease, array_agg(
            ROW(id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)::job
        ) FILTER (WHERE how IS NULL) AS items
    FROM item
    WHERE EXISTS (SELECT FROM turn)
    GROUP BY lease
), emptied AS (
    DELETE FROM lease WHERE id = ANY (ARRAY(SELECT lease FROM rest WHERE items IS NULL))
), shrunk AS (
    UPDATE lease SET items = rest.items FROM rest WHERE lease.id = rest.lease AND rest.items IS NOT NULL
), ended AS (
    INSERT INTO finished (at, status, why, items)
    SELECT statement_timestamp(), CASE how WHEN 'complete' THEN 'completed' ELSE 'discarded' END, why,
        array_agg(ROW(id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)::job)
    FROM item
    WHERE how IN ('complete', 'discard') AND EXISTS (SELECT FROM turn)
    GROUP BY how, why
), waiting AS (
    INSERT INTO scheduled
    SELECT id, rank, type, payload, retries + CASE how WHEN 'retry' THEN 1 ELSE 0 END, max_retries, created_at,
        CASE how
            WHEN 'retry' THEN statement_timestamp() + ceil(delay_ns / 1000.0)::float8 * interval '1 microsecond'
            ELSE schedule_at
        END,
        CASE how WHEN 'retry' THEN delay_ns ELSE last_delay_ns END, failure
    FROM item
    WHERE how IN ('retry', 'release') AND EXISTS (SELECT FROM turn)
)
SELECT turn.number AS "number!", item.lease AS "lease?", item.id AS "job?"
FROM turn LEFT JOIN item ON item.how IS NOT NULL
