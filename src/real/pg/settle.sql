-- Ends claims: of batches $1, each named once. Jobs $3[i] of batch $2[i] are completed. Jobs $5[i] of batch $4[i] go back, $7[i] having gone wrong:
-- for a retry $6[i] nanoseconds from now, or, if that is NULL, as if never claimed. Jobs $9[i] of batch $8[i] are discarded because of
-- $10[i], $11[i] having gone wrong. What comes back is how many of them were held and are settled by this.
WITH held AS MATERIALIZED (
    SELECT batch, size, settled FROM lease WHERE batch = ANY ($1::bigint[]) ORDER BY batch FOR UPDATE
), completed AS MATERIALIZED (
    SELECT held.batch, s.job
    FROM unnest($2::bigint[], $3::bigint[]) AS s (batch, job) JOIN held ON held.batch = s.batch
    WHERE s.job <> ALL (held.settled)
), returned AS MATERIALIZED (
    SELECT held.batch, s.job, s.delay_ns, s.failure
    FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::text[]) AS s (batch, job, delay_ns, failure)
    JOIN held ON held.batch = s.batch
    WHERE s.job <> ALL (held.settled)
), discarded AS MATERIALIZED (
    SELECT held.batch, s.job, s.why, s.failure
    FROM unnest($8::bigint[], $9::bigint[], $10::text[], $11::text[]) AS s (batch, job, why, failure)
    JOIN held ON held.batch = s.batch
    WHERE s.job <> ALL (held.settled)
), settled AS MATERIALIZED (
    SELECT batch, array_agg(job) AS jobs
    FROM (SELECT batch, job FROM completed UNION ALL SELECT batch, job FROM returned UNION ALL SELECT batch, job FROM discarded) AS s
    GROUP BY batch
), emptied AS (
    DELETE FROM lease USING settled JOIN held ON held.batch = settled.batch
    WHERE lease.batch = settled.batch AND cardinality(held.settled) + cardinality(settled.jobs) >= held.size
), shrunk AS (
    UPDATE lease SET settled = held.settled || settled.jobs
    FROM settled JOIN held ON held.batch = settled.batch
    WHERE lease.batch = settled.batch AND cardinality(held.settled) + cardinality(settled.jobs) < held.size
), done AS (
    INSERT INTO finished (at, batch, status, jobs)
    SELECT statement_timestamp(), batch, 'completed', array_agg(job) FROM completed GROUP BY batch
), given_up AS (
    INSERT INTO finished (at, batch, status, why, jobs, failures)
    SELECT statement_timestamp(), batch, 'discarded', why, array_agg(job), array_agg(failure) FROM discarded GROUP BY batch, why
), item AS MATERIALIZED (
    -- Once for all, so that each batch is unpacked once.
    SELECT batch.id AS batch, i.id AS job, i.rank, i.type, i.payload, i.retries, i.max_retries, i.created_at, i.schedule_at,
        i.last_delay_ns, i.failure
    FROM batch CROSS JOIN LATERAL unnest(batch.items) AS i
    WHERE batch.id = ANY (ARRAY(SELECT DISTINCT batch FROM returned))
), waiting AS (
    INSERT INTO scheduled (id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)
    SELECT item.job, item.rank, item.type, item.payload, item.retries + CASE WHEN returned.delay_ns IS NULL THEN 0 ELSE 1 END,
        item.max_retries, item.created_at,
        coalesce(statement_timestamp() + (returned.delay_ns / 1000 + sign(returned.delay_ns % 1000)) * interval '1 microsecond', item.schedule_at),
        coalesce(returned.delay_ns, item.last_delay_ns), coalesce(returned.failure, item.failure)
    FROM item JOIN returned ON returned.batch = item.batch AND returned.job = item.job
)
SELECT coalesce(sum(cardinality(jobs)), 0) AS "settled!" FROM settled
