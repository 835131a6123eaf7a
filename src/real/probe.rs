//! The engine beside a raw limit: the same small task, through the store and by hand, in turns on one server.
//!
//! A claim of a batch from a queue of many jobs, and its settlement. By hand that is one `UPDATE … FOR UPDATE SKIP LOCKED` and one `DELETE` on a
//! bare table with the one index that they need, and without what the engine is for: retries, leases that fence, a record of what became of a job.
//! What else the machine does meanwhile befalls both, so that their ratio says something of the engine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlx::Connection;
use sqlx::postgres::PgConnection;

use super::Error;
use super::pg::{Batch, Schema, Store, enlist, insert};
use crate::queue::{ClaimMode, How, Settlement};
use crate::rng::Seed;
use crate::worker::{Settings, Wait};
use crate::workload::{self, Arrival, Group};

/// Jobs that wait from the beginning: so many that a claim which looks at all of them is seen to.
const QUEUE: u32 = 20_000;
/// Jobs in a batch.
const BATCH: u32 = 10;
/// Batches in a round; the fastest is the round's time. What else the machine does only ever adds to a time, so the least of many is the one
/// that says most of the code; medians of a busy machine differ threefold from one minute to the next.
const BATCHES: usize = 40;
const LEASE: Duration = Duration::from_secs(60);

const BARE_TABLE: &str = "
    CREATE TABLE bare (
        id          bigint      PRIMARY KEY,
        type        text        NOT NULL,
        payload     text        NOT NULL,
        priority    smallint    NOT NULL,
        lease_until timestamptz
    ) WITH (autovacuum_enabled = off);
    CREATE INDEX bare_available ON bare (priority DESC, id) WHERE lease_until IS NULL;";
const BARE_CLAIM: &str = "
    UPDATE bare SET lease_until = statement_timestamp() + interval '60 s'
    WHERE id = ANY (ARRAY(
        SELECT id FROM bare WHERE lease_until IS NULL ORDER BY priority DESC, id LIMIT $1 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, type, payload";
const BARE_SETTLE: &str = "DELETE FROM bare WHERE id = ANY ($1)";

/// Times of one batch, or of one round, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    claim: f64,
    settle: f64,
}

/// What was measured, a value per round.
#[derive(Clone, Debug, Default)]
pub struct Probed {
    /// The ratios of [`crate::metrics::ENGINE_METRICS`].
    pub ratios: BTreeMap<String, Vec<f64>>,
    /// Seconds that the engine's claims took.
    pub claim: Vec<f64>,
    /// Seconds that its settlements took.
    pub settle: Vec<f64>,
}

/// Measures so many rounds in an empty schema.
///
/// # Errors
/// If the database can't be reached, or refuses a statement.
///
/// # Panics
/// If there are more rounds than jobs for them.
pub async fn probe(schema: &Schema, rounds: usize) -> Result<Probed, Error> {
    assert!(rounds * BATCHES * (BATCH as usize) < QUEUE as usize, "there are jobs for each round");
    let wait = Wait::Due { at_most: Duration::from_secs(1) };
    let settings = Settings { count: 1, slots: BATCH, connections: 1, claim: ClaimMode::Lease, batch: BATCH, lease: LEASE, wait };
    let mut connection = PgConnection::connect_with(schema.options()).await?;
    fill(&mut connection).await?;
    let store = Store::open(schema, &settings).await?;
    let mut probed = Probed::default();
    // The first round warms up what both use.
    for round in 0..=rounds {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..BATCHES {
            ours.push(engine(&store).await?);
            bare.push(by_hand(&mut connection).await?);
        }
        let (ours, bare) = (fastest(&ours), fastest(&bare));
        if round == 0 {
            continue;
        }
        probed.claim.push(ours.claim);
        probed.settle.push(ours.settle);
        let ratios = [("engine_claim_over_raw", ours.claim / bare.claim), ("engine_settle_over_raw", ours.settle / bare.settle)];
        for (name, ratio) in ratios {
            probed.ratios.entry(name.to_owned()).or_default().push(ratio);
        }
    }
    store.close().await;
    connection.close().await?;
    Ok(probed)
}

/// Both tables with the same jobs.
async fn fill(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let group = Group {
        kind: "email".to_owned(),
        count: u64::from(QUEUE),
        arrival: Arrival::AtOnce,
        at: Duration::ZERO,
        priority: 0,
        permanent: 0.0,
        max_retries: 3,
    };
    let groups = [group];
    let jobs = workload::jobs(&groups, Seed(1));
    let (producer, number) = (enlist(connection).await?, 1);
    let batch = Batch { producer, number, jobs: &jobs, groups: &groups, max_retries: None };
    insert(connection, batch, ClaimMode::Lease).await?;
    for statement in
        [BARE_TABLE, "INSERT INTO bare (id, type, payload, priority) SELECT id, type, payload, priority FROM jobs", "ANALYZE"]
    {
        sqlx::raw_sql(statement).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn engine(store: &Store) -> Result<Round, sqlx::Error> {
    let began = Instant::now();
    let claimed = store.claim(0, BATCH, LEASE).await?;
    let claim = began.elapsed();
    let complete = |claim: &crate::queue::Claim| Settlement { job: claim.job, token: claim.token, how: How::Complete };
    let settlements: Vec<Settlement> = claimed.claims.iter().map(complete).collect();
    let began = Instant::now();
    store.settle(&settlements).await?;
    Ok(Round { claim: claim.as_secs_f64(), settle: began.elapsed().as_secs_f64() })
}

async fn by_hand(connection: &mut PgConnection) -> Result<Round, sqlx::Error> {
    let began = Instant::now();
    let claim = sqlx::query_as(BARE_CLAIM).bind(i64::from(BATCH));
    let claimed: Vec<(i64, String, String)> = claim.fetch_all(&mut *connection).await?;
    let claim = began.elapsed();
    let ids: Vec<i64> = claimed.into_iter().map(|(id, ..)| id).collect();
    let began = Instant::now();
    sqlx::query(BARE_SETTLE).bind(&ids).execute(&mut *connection).await?;
    Ok(Round { claim: claim.as_secs_f64(), settle: began.elapsed().as_secs_f64() })
}

fn fastest(batches: &[Round]) -> Round {
    let least = |of: fn(&Round) -> f64| batches.iter().map(of).fold(f64::INFINITY, f64::min);
    Round { claim: least(|round| round.claim), settle: least(|round| round.settle) }
}
