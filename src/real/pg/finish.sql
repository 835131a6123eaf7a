-- Completes every job of the batches $1, if nothing of them has been settled yet. Those that come back were held.
WITH gone AS (
    DELETE FROM lease WHERE batch = ANY ($1::bigint[]) AND settled = '{}' RETURNING batch
), kept AS (
    INSERT INTO finished (at, batch, status) SELECT statement_timestamp(), batch, 'completed' FROM gone
)
SELECT batch AS "batch!" FROM gone
