//! What this Postgres can do at all: hand-written statements in a loop, on tables with nothing to spare.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};

use simq::real::pg::Schema;

use super::place::{connect, run};

/// A queue of new jobs with the one index that a claim needs, and leases that hold a whole batch.
const TABLES: &str = "
    CREATE TABLE raw_ready (id bigint NOT NULL, priority int2 NOT NULL DEFAULT 0, attempt int2 NOT NULL DEFAULT 0, payload jsonb NOT NULL)
        WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
    CREATE UNIQUE INDEX ON raw_ready (priority DESC, id);
    CREATE TABLE raw_lease (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, worker int NOT NULL, until timestamptz NOT NULL,
        ids bigint[] NOT NULL, attempts int2[] NOT NULL, payloads jsonb[] NOT NULL)
        WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
    ALTER TABLE raw_lease ALTER COLUMN payloads SET STORAGE EXTERNAL, ALTER COLUMN ids SET STORAGE EXTERNAL;
    CREATE TABLE raw_single (id bigint PRIMARY KEY, priority int2 NOT NULL DEFAULT 0, payload jsonb NOT NULL, lease_until timestamptz);
    CREATE INDEX ON raw_single (priority DESC, id) WHERE lease_until IS NULL;";

/// Finishes one lease and takes the next, in one statement.
const FUSED: &str = "
    WITH finished AS (DELETE FROM raw_lease WHERE id = $3 AND worker = $2),
    taken AS (
        DELETE FROM raw_ready WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM raw_ready ORDER BY priority DESC, id LIMIT $1 FOR UPDATE SKIP LOCKED))
        RETURNING id, (attempt + 1)::int2 AS attempt, payload
    ), leased AS (
        INSERT INTO raw_lease (worker, until, ids, attempts, payloads)
        SELECT $2, now() + interval '30 s', array_agg(id), array_agg(attempt), array_agg(payload) FROM taken HAVING count(*) > 0
        RETURNING id
    )
    SELECT (SELECT id FROM leased) AS lease, id, attempt, payload::text FROM taken";

const CLAIM_ONE: &str = "
    UPDATE raw_single SET lease_until = now() + interval '30 s'
    WHERE id = (SELECT id FROM raw_single WHERE lease_until IS NULL ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, payload::text";
const FINISH_ONE: &str = "DELETE FROM raw_single WHERE id = $1";

const ENQUEUE: &str = "
    INSERT INTO raw_ready (id, payload) SELECT id, jsonb_build_object('id', id) FROM unnest($1::bigint[]) AS id";

pub async fn prepare(schema: &Schema) -> PgConnection {
    let mut connection = connect(schema).await;
    run(&mut connection, TABLES).await;
    connection
}

pub fn fill(table: &str, jobs: u64) -> String {
    format!(
        "INSERT INTO {table} (id, payload) SELECT g, jsonb_build_object('to', 'customer-' || g || '@example.com') FROM generate_series(1, {jobs}) AS g"
    )
}

/// `connections` clients drain the queue, `batch` jobs at a time. Returns how many jobs they saw.
pub async fn drain(schema: &Schema, connections: u32, batch: i64) -> u64 {
    let mut clients = Vec::new();
    for worker in 0..connections as i32 {
        let mut connection = connect(schema).await;
        clients.push(tokio::spawn(async move {
            let (mut lease, mut jobs) = (0_i64, 0);
            loop {
                let rows =
                    sqlx::query(FUSED).bind(batch).bind(worker).bind(lease).fetch_all(&mut connection).await.expect("it claims");
                let Some(first) = rows.first() else { break };
                lease = first.get(0);
                jobs += rows.iter().map(|row| row.get::<&str, _>(3)).filter(|payload| !payload.is_empty()).count() as u64;
            }
            connection.close().await.expect("it closes");
            jobs
        }));
    }
    total(clients).await
}

/// `connections` clients take and finish one job at a time.
pub async fn single(schema: &Schema, connections: u32) -> u64 {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut connection = connect(schema).await;
        clients.push(tokio::spawn(async move {
            let mut jobs = 0;
            while let Some(row) = sqlx::query(CLAIM_ONE).fetch_optional(&mut connection).await.expect("it claims") {
                let id: i64 = row.get(0);
                sqlx::query(FINISH_ONE).bind(id).execute(&mut connection).await.expect("it finishes");
                jobs += 1;
            }
            jobs
        }));
    }
    total(clients).await
}

/// Each client puts `batch` jobs in, takes as many and finishes them, until it has done so `rounds` times.
pub async fn lifecycle(schema: &Schema, connections: u32, batch: i64, rounds: i64) -> u64 {
    let mut clients = Vec::new();
    for worker in 0..connections {
        let mut connection = connect(schema).await;
        clients.push(tokio::spawn(async move {
            let (mut lease, mut jobs) = (0_i64, 0);
            for round in 0..rounds {
                let first = (i64::from(worker) * rounds + round) * batch;
                let ids: Vec<i64> = (first..first + batch).collect();
                sqlx::query(ENQUEUE).bind(&ids).execute(&mut connection).await.expect("it puts in");
                let rows = sqlx::query(FUSED)
                    .bind(batch)
                    .bind(worker as i32)
                    .bind(lease)
                    .fetch_all(&mut connection)
                    .await
                    .expect("it claims");
                jobs += rows.len() as u64;
                lease = rows.first().map_or(0, |row| row.get(0));
            }
            jobs
        }));
    }
    total(clients).await
}

/// Puts so many jobs in, `batch` at a time.
pub async fn put_in(connection: &mut PgConnection, jobs: i64, batch: i64) {
    for first in (0..jobs).step_by(batch as usize) {
        let ids: Vec<i64> = (first..first + batch).collect();
        sqlx::query(ENQUEUE).bind(&ids).execute(&mut *connection).await.expect("it puts in");
    }
}

async fn total(clients: Vec<tokio::task::JoinHandle<u64>>) -> u64 {
    let mut jobs = 0;
    for client in clients {
        jobs += client.await.expect("it does not panic");
    }
    jobs
}
