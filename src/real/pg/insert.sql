-- Puts jobs in, due at once, as batch number $2 of producer $1; nothing is done if this batch was put in before.
WITH turn AS (
    INSERT INTO receipt AS last (producer, number) VALUES ($1, $2)
    ON CONFLICT (producer) DO UPDATE SET number = excluded.number WHERE last.number < excluded.number
    RETURNING number
)
INSERT INTO ready (id, rank, type, payload, max_retries)
SELECT id, -priority, type, payload, max_retries
FROM unnest($3::bigint[], $4::text[], $5::text[], $6::integer[], $7::integer[]) AS job (id, type, payload, priority, max_retries)
WHERE EXISTS (SELECT FROM turn)
