-- The queue: one table, the article's columns first, then what leases need. The states and their arrows are drawn in
-- src/queue/mod.rs. Every instant is this server's; callers pass durations only.
CREATE TABLE jobs (
    id            bigint      PRIMARY KEY,
    type          text        NOT NULL,
    payload       text        NOT NULL,
    status        text        NOT NULL DEFAULT 'available',
    priority      smallint    NOT NULL DEFAULT 0,
    retries       integer     NOT NULL DEFAULT 0,
    max_retries   integer     NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    schedule_at   timestamptz NOT NULL DEFAULT now(),
    last_delay_ns bigint,               -- the delay that the policy chose last, as it chose it
    worker        integer,              -- who claimed it last
    lease_token   bigint,               -- the name of the latest claim; kept after its end, so that a repeated settle is known
    lease_until   timestamptz,          -- when a running job's claim expires
    failure       text,                 -- what went wrong last
    discarded_why text,
    finished_at   timestamptz,
    CONSTRAINT known_status CHECK (status IN ('available', 'running', 'retryable', 'completed', 'discarded')),
    CONSTRAINT known_why CHECK (discarded_why IN ('permanent', 'exhausted')),
    CONSTRAINT retries_within_bounds CHECK (retries BETWEEN 0 AND max_retries),
    CONSTRAINT running_means_leased CHECK ((status = 'running') = (lease_until IS NOT NULL)),
    CONSTRAINT discarded_means_why CHECK ((status = 'discarded') = (discarded_why IS NOT NULL)),
    CONSTRAINT ended_means_finished CHECK ((status IN ('completed', 'discarded')) = (finished_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- What may be claimed, in claim order. Backed-off jobs are not in it.
CREATE INDEX jobs_available ON jobs (priority DESC, created_at, id) WHERE status = 'available';
-- What waits, by when it is due.
CREATE INDEX jobs_retryable ON jobs (schedule_at) WHERE status = 'retryable';
-- What is claimed, by when the claim expires.
CREATE INDEX jobs_running ON jobs (lease_until) WHERE status = 'running';

CREATE SEQUENCE lease_tokens;
