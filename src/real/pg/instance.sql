-- A number for an instance of the store, that no other of this schema has.
SELECT nextval('instances') AS "instance!"
