-- The queue. A job moves: from `ready`, or from `scheduled` once it is due, into the `batch` of those that were claimed with it, which is
-- exclusive as long as its `lease` lasts, and from there it is `finished`, or back in `scheduled`. What is large is written once: a
-- batch is never touched again, and to finish all its jobs is to delete one small row and to append another. Nothing that a
-- claim reads is ever updated, and backed-off jobs are not in its way. The view `jobs` shows them all as one table. Every instant is
-- this server's; callers pass durations only. The states and their arrows are drawn in src/queue/mod.rs.
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

-- New jobs, due since they were created; never updated: appended by producers, deleted by claims. The only index is the claim order.
-- Numbers are given out in order of arrival, so the number is the age, and a claimer may go on from where it was.
CREATE TABLE ready (
    id            bigint      NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT statement_timestamp(),
    rank          integer     NOT NULL,
    max_retries   integer     NOT NULL,
    type          text        NOT NULL,
    payload       text        NOT NULL,
    CONSTRAINT retries_within_bounds CHECK (max_retries >= 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX ready_order ON ready (rank, id);

-- Jobs that wait for their next attempt, by when it is due. Also jobs handed back unstarted, or taken from a lost worker.
CREATE TABLE scheduled (
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
CREATE INDEX scheduled_due ON scheduled (rank, schedule_at, id);

-- What was claimed together, as it was then. The number is the claimer's: its instance's, times 2^32, and one that it counts up.
CREATE TABLE batch (
    id     bigint  PRIMARY KEY,
    worker integer NOT NULL,
    items  job[]   NOT NULL,
    CONSTRAINT batches_hold_jobs CHECK (cardinality(items) > 0)
);
ALTER TABLE batch ALTER COLUMN items SET STORAGE EXTERNAL;
CREATE SEQUENCE instances MAXVALUE 1048575;         -- a claim is named by its batch, times 2^10, and its place

-- What is claimed: a row per batch, exclusive until it runs out. A settlement adds its jobs to `settled`; the last takes the row.
CREATE TABLE lease (
    batch   bigint      PRIMARY KEY,
    until   timestamptz NOT NULL,
    size    integer     NOT NULL,                   -- jobs in the batch
    settled bigint[]    NOT NULL DEFAULT '{}',      -- those of them that have been settled, if not all
    CONSTRAINT leases_hold_jobs CHECK (cardinality(settled) < size)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- What has ended, appended and never touched again: a row per settlement, batch and kind of end.
CREATE TABLE finished (
    at       timestamptz NOT NULL,
    batch    bigint      NOT NULL,
    status   text        NOT NULL,
    why      text,
    jobs     bigint[],                              -- NULL: all of the batch,
    but      bigint[],                              -- but these, if any
    failures text[],                                -- what went wrong with each, if anything did
    CONSTRAINT known_status CHECK (status IN ('completed', 'discarded')),
    CONSTRAINT known_why CHECK (why IN ('permanent', 'exhausted')),
    CONSTRAINT discarded_means_why CHECK ((status = 'discarded') = (why IS NOT NULL)),
    CONSTRAINT a_failure_for_each CHECK (cardinality(failures) = cardinality(jobs))
);

-- Jobs whose lease ran out before they were settled. Whoever settles a claim that is no longer held has lost it if it is here, and
-- has settled it before if it is not: so a settlement can be sent again, without a receipt for each.
CREATE TABLE expired (
    batch bigint   PRIMARY KEY,
    jobs  bigint[] NOT NULL
);

-- The last batch that each producer put in, so that one which is sent again, its answer having been lost, is known.
CREATE TABLE receipt (
    producer bigint PRIMARY KEY,
    number   bigint NOT NULL
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
    SELECT id, type, payload, 'available' AS status, -rank AS priority, 0 AS retries, max_retries, created_at, created_at AS schedule_at,
        NULL::bigint AS last_delay_ns, NULL::text AS failure, NULL::text AS discarded_why, NULL::timestamptz AS finished_at,
        NULL::integer AS worker
    FROM ready
UNION ALL
    SELECT id, type, payload, CASE WHEN schedule_at <= statement_timestamp() THEN 'available' ELSE 'retryable' END, -rank, retries,
        max_retries, created_at, schedule_at, last_delay_ns, failure, NULL, NULL, NULL
    FROM scheduled
UNION ALL
    SELECT i.id, i.type, i.payload, 'running', -i.rank, i.retries, i.max_retries, i.created_at, i.schedule_at, i.last_delay_ns, i.failure,
        NULL, NULL, batch.worker
    FROM lease JOIN batch ON batch.id = lease.batch CROSS JOIN LATERAL unnest(batch.items) AS i
    WHERE i.id <> ALL (lease.settled)
UNION ALL
    SELECT i.id, i.type, i.payload, finished.status, -i.rank, i.retries, i.max_retries, i.created_at, i.schedule_at, i.last_delay_ns,
        coalesce(finished.failures[array_position(finished.jobs, i.id)], i.failure), finished.why, finished.at, NULL
    FROM finished JOIN batch ON batch.id = finished.batch CROSS JOIN LATERAL unnest(batch.items) AS i
    WHERE (finished.jobs IS NULL OR i.id = ANY (finished.jobs)) AND (finished.but IS NULL OR i.id <> ALL (finished.but))
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
