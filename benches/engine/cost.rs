//! What a claim costs beside a backlog that it has no business with: retries that are not due, rows that are dead, jobs that have ended.

use std::time::{Duration, Instant};

use simq::queue::{ClaimMode, How, Settlement};
use simq::real::pg::{Schema, Store};
use sqlx::postgres::PgConnection;

use super::place::{Place, connect, crew, fill, run, succeed};
use super::tell::median;

const CLAIMS: usize = 200;
const BATCH: u32 = 10;

pub async fn measure(place: &Place) {
    println!("\ncost of a claim of {BATCH} jobs: median of {CLAIMS}");
    println!("{:<44} {:>12} {:>22}", "", "engine", "the article's (1 job)");
    let mut none = None;
    for backlog in [0_u64, 10_000, 100_000, 1_000_000] {
        let ours = engine(place, &backed_off(backlog)).await;
        let article = article(place, &articles_backed_off(backlog)).await;
        line(&format!("{backlog} jobs backed off"), ours, article, *none.get_or_insert(ours));
    }
    for dead in [0_u64, 1_000_000] {
        let ours = engine(place, &kept("ready", dead)).await;
        let article = article(place, &articles_kept(dead)).await;
        line(&format!("{dead} jobs completed, rows not yet vacuumed"), ours, article, none.unwrap_or(ours));
    }
}

/// Costs in milliseconds.
fn line(what: &str, ours: f64, article: f64, none: f64) {
    println!("{what:<44} {ours:>9.2} ms {article:>19.2} ms   engine {:.2}x of none", ours / none);
}

fn backed_off(jobs: u64) -> String {
    format!(
        "INSERT INTO scheduled SELECT -id, 0, 'email', '{{}}', 1, 5, now() - interval '1 h', now() + interval '1 h' + id * interval '1 ms'
         FROM generate_series(1, {jobs}) AS id"
    )
}

/// Jobs that were put in and have been completed; the rows that they left in the queue are dead and still there.
fn kept(table: &str, jobs: u64) -> String {
    format!(
        "ALTER TABLE {table} SET (autovacuum_enabled = off);
         INSERT INTO ready SELECT -id, 0, 'email', '{{}}', 0, 5, now(), now() FROM generate_series(1, {jobs}) AS id;
         WITH gone AS (DELETE FROM ready RETURNING *)
         INSERT INTO finished (at, status, items)
         SELECT now(), 'completed', array_agg(ROW(gone.*)::job) FROM gone GROUP BY id / 64"
    )
}

fn articles_backed_off(jobs: u64) -> String {
    format!(
        "INSERT INTO article (id, type, payload, priority, retries, max_retries, created_at, schedule_at)
         SELECT -id, 'email', '{{}}', 0, 1, 5, now() - interval '1 h', now() + interval '1 h' FROM generate_series(1, {jobs}) AS id"
    )
}

fn articles_kept(jobs: u64) -> String {
    format!(
        "ALTER TABLE article SET (autovacuum_enabled = off);
         INSERT INTO article (id, type, payload, priority, max_retries) SELECT -id, 'email', '{{}}', 0, 5 FROM generate_series(1, {jobs}) AS id;
         UPDATE article SET status = 'completed', finished_at = now()"
    )
}

async fn engine(place: &Place, backlog: &str) -> f64 {
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    run(&mut connection, backlog).await;
    run(&mut connection, &fill(1, 20_000)).await;
    run(&mut connection, "ANALYZE; CHECKPOINT").await;
    let store = Store::open(&schema, &crew(1, BATCH, ClaimMode::Lease, succeed).workers).await.expect("the store opens");
    let mut number = 0;
    let time = claims(&store, async |store: &Store, settlements: &[Settlement]| {
        number += 1;
        store.settle(0, number, settlements).await.expect("it settles");
    })
    .await;
    close(store, connection, schema).await;
    time
}

async fn article(place: &Place, backlog: &str) -> f64 {
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    run(&mut connection, backlog).await;
    let rows = "SELECT g, 'email', '{}', 0, 5 FROM generate_series(1, 20000) AS g";
    run(&mut connection, &format!("INSERT INTO article (id, type, payload, priority, max_retries) {rows}; ANALYZE; CHECKPOINT"))
        .await;
    let store = Store::open(&schema, &crew(1, 1, ClaimMode::Transaction, succeed).workers).await.expect("the store opens");
    let time = claims(&store, async |store: &Store, settlements: &[Settlement]| {
        store.settle(0, 1, settlements).await.expect("it settles");
    })
    .await;
    close(store, connection, schema).await;
    time
}

/// The median time of a claim, in milliseconds.
async fn claims(store: &Store, mut settle: impl AsyncFnMut(&Store, &[Settlement])) -> f64 {
    let mut times = Vec::new();
    for _ in 0..CLAIMS {
        let began = Instant::now();
        let claimed = store.claim(0, BATCH, Duration::from_secs(30)).await.expect("it claims");
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let complete = |claim: &simq::queue::Claim| Settlement { job: claim.job, token: claim.token, how: How::Complete };
        let settlements: Vec<Settlement> = claimed.claims.iter().map(complete).collect();
        assert!(!settlements.is_empty(), "there is work");
        settle(store, &settlements).await;
    }
    median(times)
}

async fn close(store: Store, connection: PgConnection, schema: Schema) {
    store.close().await;
    drop(connection);
    schema.drop().await.expect("it drops");
}
