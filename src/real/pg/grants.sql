-- All that simq needs of a database of yours. It makes a schema of its own there and needs no right to anything else.
CREATE ROLE simq LOGIN;
GRANT CONNECT ON DATABASE jobs TO simq;
GRANT CREATE ON DATABASE jobs TO simq;
