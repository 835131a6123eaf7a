-- Completes every job under the leases $3, as settlement number $2 of client $1. The leases that come back were held; the others are
-- lost. Nothing comes back, and nothing is done, if this settlement was carried out before.
WITH held AS MATERIALIZED (
    SELECT id FROM lease WHERE id = ANY ($3::bigint[]) ORDER BY id FOR UPDATE
), turn AS (
    INSERT INTO receipt AS last (client, number, lost)
    SELECT $1, $2, ARRAY(SELECT unnest($3::bigint[]) EXCEPT SELECT id FROM held)
    ON CONFLICT (client) DO UPDATE SET number = excluded.number, lost = excluded.lost WHERE last.number < excluded.number
    RETURNING number
), gone AS (
    DELETE FROM lease
    WHERE id = ANY (ARRAY(SELECT id FROM held)) AND EXISTS (SELECT FROM turn)
    RETURNING id, items
), kept AS (
    INSERT INTO finished (at, status, items) SELECT statement_timestamp(), 'completed', items FROM gone
)
SELECT turn.number AS "number!", gone.id AS "lease?" FROM turn LEFT JOIN gone ON true
