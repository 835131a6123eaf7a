-- Ends whole batches $1, if nothing of them has been settled yet. Jobs $3[i] of batch $2[i] go back, $5[i] having gone wrong: for a retry
-- $4[i] nanoseconds from now, or, if that is NULL, as if never claimed. Jobs $7[i] of batch $6[i] are discarded because of $8[i], $9[i] having gone
-- wrong. All others are completed. The batches that come back were held.
WITH gone AS (
    DELETE FROM lease WHERE batch = ANY ($1::bigint[]) AND settled = '{}' RETURNING batch, size
), returned AS MATERIALIZED (
    SELECT gone.batch, s.job, s.delay_ns, s.failure
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS s (batch, job, delay_ns, failure)
    JOIN gone ON gone.batch = s.batch
), discarded AS MATERIALIZED (
    SELECT gone.batch, s.job, s.why, s.failure
    FROM unnest($6::bigint[], $7::bigint[], $8::text[], $9::text[]) AS s (batch, job, why, failure)
    JOIN gone ON gone.batch = s.batch
), other AS MATERIALIZED (
    SELECT batch, array_agg(job) AS jobs
    FROM (SELECT batch, job FROM returned UNION ALL SELECT batch, job FROM discarded) AS s
    GROUP BY batch
), done AS (
    INSERT INTO finished (at, batch, status, but)
    SELECT statement_timestamp(), gone.batch, 'completed', other.jobs
    FROM gone LEFT JOIN other ON other.batch = gone.batch
    WHERE other.jobs IS NULL OR cardinality(other.jobs) < gone.size
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
SELECT batch AS "batch!" FROM gone
