-- Puts jobs in, due at once. Those that are there already stay as they are, so that it can be sent again.
INSERT INTO article (id, type, payload, priority, max_retries)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::integer[], $5::integer[])
ON CONFLICT (id) DO NOTHING
