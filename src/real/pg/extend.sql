-- Makes the leases of batches $1 last for $2 microseconds from now. Those that come back were still held.
WITH held AS MATERIALIZED (
    SELECT batch FROM lease WHERE batch = ANY ($1::bigint[]) ORDER BY batch FOR UPDATE
)
UPDATE lease
SET until = statement_timestamp() + $2::bigint * interval '1 microsecond'
FROM held
WHERE lease.batch = held.batch
RETURNING lease.batch
