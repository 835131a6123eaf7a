-- Makes the leases $1 last for $2 microseconds from now. Those that come back were still held.
WITH held AS MATERIALIZED (
    SELECT id FROM lease WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE
)
UPDATE lease
SET until = statement_timestamp() + $2::bigint * interval '1 microsecond'
FROM held
WHERE lease.id = held.id
RETURNING lease.id
