-- The queue. A job is one value that moves: from `ready`, or from `scheduled` once it is due, into the `items` of a lease, and
-- from there to `finished` or back to `scheduled`. So nothing that a claim reads is ever updated, backed-off jobs are not in its way,
-- and a batch of claimed or finished jobs is one row. The view `jobs` shows them all as one table. Every instant is this
-- server's; callers pass durations only. The states and their arrows are drawn in src/queue/mod.rs.
CREATE TYPE job AS (
    id            bigint,
    rank          integer,      -- minus the priority, so that one ascending index serves "higher priority first"
    type          text,
    payload       text,
    retries       integer,
    max_retries   integer,
    created_at    timestamptz,
    schedule_at   timestamptz,
    last_delay_ns bigint,       -- the delay that the policy chose last, as it chose it
    failure       text          -- what went wrong last
);

-- New jobs, never updated: appended by producers, deleted by claims. The only index is the claim order. Numbers are given out in
-- order of arrival, so the number is the age, and a claimer may go on from where it was.
CREATE TABLE ready (
    id            bigint      NOT NULL,
    rank          integer     NOT NULL,
    type          text        NOT NULL,
    payload       text        NOT NULL,
    retries       integer     NOT NULL,
    max_retries   integer     NOT NULL,
    created_at    timestamptz NOT NULL,
    schedule_at   timestamptz NOT NULL,
    last_delay_ns bigint,
    failure       text,
    CONSTRAINT retries_within_bounds CHECK (retries BETWEEN 0 AND max_retries)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX ready_order ON ready (rank, id);

-- Jobs that wait for their next attempt, by when it is due. Also jobs handed back unstarted, or taken from a lost worker.
CREATE TABLE scheduled (
    LIKE ready INCLUDING CONSTRAINTS
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX scheduled_due ON scheduled (rank, schedule_at);

-- What is claimed: a row per batch, exclusive until its lease runs out. A settlement takes its jobs out of `items`; the last takes the row.
CREATE TABLE lease (
    id     bigint      PRIMARY KEY,
    worker integer     NOT NULL,
    until  timestamptz NOT NULL,
    items  job[]       NOT NULL,
    CONSTRAINT leases_hold_jobs CHECK (cardinality(items) > 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE lease ALTER COLUMN items SET STORAGE EXTERNAL;
CREATE SEQUENCE lease_numbers CACHE 1;

-- What has ended, appended and never touched again: a row per settlement and kind of end.
CREATE TABLE finished (
    at     timestamptz NOT NULL,
    status text        NOT NULL,
    why    text,
    items  job[]       NOT NULL,
    CONSTRAINT known_status CHECK (status IN ('completed', 'discarded')),
    CONSTRAINT known_why CHECK (why IN ('permanent', 'exhausted')),
    CONSTRAINT discarded_means_why CHECK ((status = 'discarded') = (why IS NOT NULL))
);
ALTER TABLE finished ALTER COLUMN items SET STORAGE EXTERNAL;

-- The last settlement of each client, so that one which is sent again, its answer having been lost, is known. The same for producers.
CREATE TABLE receipt (
    client integer  PRIMARY KEY,
    number bigint   NOT NULL,
    lost   bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The queue that many write first: one table, one status, one job per transaction, which stays open while the job runs. It is what `claim =
-- "transaction"` uses, to show the difference; the statements are in src/real/pg/article/.
CREATE TABLE article (
    id            bigint      PRIMARY KEY,
    type          text        NOT NULL,
    payload       text        NOT NULL,
    status        text        NOT NULL DEFAULT 'pending',
    priority      integer     NOT NULL,
    retries       integer     NOT NULL DEFAULT 0,
    max_retries   integer     NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    schedule_at   timestamptz NOT NULL DEFAULT now(),
    last_delay_ns bigint,
    failure       text,
    why           text,
    finished_at   timestamptz,
    CONSTRAINT known_status CHECK (status IN ('pending', 'processing', 'completed', 'failed'))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX article_order ON article (priority DESC, created_at, id) WHERE status = 'pending';

-- Every job as one row, in the words of the states.
CREATE VIEW jobs AS
    SELECT id, type, payload, 'available' AS status, -rank AS priority, retries, max_retries, created_at, schedule_at, last_delay_ns,
        failure, NULL::text AS discarded_why, NULL::timestamptz AS finished_at, NULL::integer AS worker
    FROM ready
UNION ALL
    SELECT id, type, payload, CASE WHEN schedule_at <= statement_timestamp() THEN 'available' ELSE 'retryable' END, -rank, retries,
        max_retries, created_at, schedule_at, last_delay_ns, failure, NULL, NULL, NULL
    FROM scheduled
UNION ALL
    SELECT i.id, i.type, i.payload, 'running', -i.rank, i.retries, i.max_retries, i.created_at, i.schedule_at, i.last_delay_ns, i.failure,
        NULL, NULL, lease.worker
    FROM lease CROSS JOIN LATERAL unnest(lease.items) AS i
UNION ALL
    SELECT i.id, i.type, i.payload, finished.status, -i.rank, i.retries, i.max_retries, i.created_at, i.schedule_at, i.last_delay_ns,
        i.failure, finished.why, finished.at, NULL
    FROM finished CROSS JOIN LATERAL unnest(finished.items) AS i
UNION ALL
    SELECT id, type, payload,
        CASE status
            WHEN 'pending' THEN CASE WHEN schedule_at <= statement_timestamp() THEN 'available' ELSE 'retryable' END
            WHEN 'processing' THEN 'running'
            WHEN 'failed' THEN 'discarded'
            ELSE status
        END,
        priority, retries, max_retries, created_at, schedule_at, last_delay_ns, failure, why, finished_at, NULL
    FROM article;
