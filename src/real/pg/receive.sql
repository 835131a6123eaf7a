-- Whether batch number $2 of producer $1 is to be put in: not if it was before.
INSERT INTO receipt AS last (producer, number) VALUES ($1, $2)
ON CONFLICT (producer) DO UPDATE SET number = excluded.number WHERE last.number < excluded.number
