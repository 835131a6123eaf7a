//! What a claim costs beside a backlog that it has no business with: retries that are not due, rows that are dead, jobs that have ended.

use std::time::{Duration, Instant};

use simq::queue::{ClaimMode, How, Settlement};
use simq::real::pg::{PLANS, Schema, Store};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};

use super::place::{Place, connect, crew, fill, run, succeed};
use super::tell::median;

const CLAIMS: usize = 200;
const BATCH: u32 = 10;

pub async fn measure(place: &Place) {
    println!(
        "\ncost of a claim of {BATCH} jobs: median of {CLAIMS}, pages touched by one, and by one of those, ten a second at the most, that look at everything"
    );
    println!("{:<44} {:>30} {:>28}", "", "engine", "the article's (1 job)");
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

/// What a claim costs.
#[derive(Clone, Copy)]
struct Cost {
    ms: f64,
    /// Pages looked at, as often as they were.
    pages: u64,
    /// The same of a claim that goes on from nowhere and passes nothing by.
    all: u64,
}

fn line(what: &str, ours: Cost, article: Cost, none: Cost) {
    let pages = ours.pages as f64 / none.pages as f64;
    println!(
        "{what:<44} {:>9.2} ms {:>7} {:>9} {:>17.2} ms {:>7}   engine {:.2}x the time, {pages:.2}x and {:.2}x the pages of none",
        ours.ms,
        ours.pages,
        ours.all,
        article.ms,
        article.pages,
        ours.ms / none.ms,
        ours.all as f64 / none.all as f64
    );
}

const NEW: &str = include_str!("../../src/real/pg/claim_new.sql");
const ALL: &str = include_str!("../../src/real/pg/claim.sql");
const ARTICLE: &str = include_str!("../../src/real/pg/article/claim.sql");

/// The engine's own statements, explained, and taken back: the one that goes on behind the first jobs, and the one that looks at everything.
async fn pages(connection: &mut PgConnection) -> (u64, u64) {
    let settings: String = PLANS.iter().map(|(name, value)| format!("SET {name} = {value};")).collect();
    let prepare = format!(
        "{settings} PREPARE new (bigint, bigint, integer, bigint, bigint, integer) AS {NEW};
         PREPARE all_of_it (bigint, bigint, integer, bigint, bigint[], integer[], bigint[]) AS {ALL}"
    );
    run(connection, &prepare).await;
    let new = format!("EXECUTE new ({BATCH}, 30000000, 0, {BATCH}, 1, 0)");
    let all = format!("EXECUTE all_of_it ({BATCH}, 30000000, {}, {}, '{{1}}', '{{0}}', '{{0}}')", i32::MIN, i64::MIN);
    // The first to come by marks dead entries for those who follow.
    explained(connection, &all).await;
    explained(connection, &new).await;
    (explained(connection, &new).await, explained(connection, &all).await)
}

/// The pages that a statement touches. What it puts in is done after it has answered, and counted apart.
async fn explained(connection: &mut PgConnection, statement: &str) -> u64 {
    let mut transaction = connection.begin().await.expect("a transaction begins");
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}");
    // Text, though its type is called JSON.
    let plan: String =
        sqlx::raw_sql(AssertSqlSafe(explain)).fetch_one(&mut *transaction).await.expect("it explains").get_unchecked(0);
    transaction.rollback().await.expect("it rolls back");
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("the server writes JSON");
    let root = &plan[0]["Plan"];
    let puts_in = root["Plans"].as_array().into_iter().flatten().filter(|part| part["Subplan Name"] == "CTE leased");
    touched(root) + puts_in.map(touched).sum::<u64>()
}

fn touched(node: &serde_json::Value) -> u64 {
    ["Shared Hit Blocks", "Shared Read Blocks"].iter().filter_map(|blocks| node[blocks].as_u64()).sum()
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
         INSERT INTO ready (id, rank, max_retries, type, payload) SELECT -id, 0, 5, 'email', '{{}}' FROM generate_series(1, {jobs}) AS id;
         WITH gone AS (DELETE FROM ready RETURNING *)
         INSERT INTO batch (id, worker, items)
         SELECT id / 64, 0, array_agg(ROW(id, rank, type, payload, 0, max_retries, created_at, created_at, NULL, NULL)::job)
         FROM gone GROUP BY id / 64;
         INSERT INTO finished (at, batch, status) SELECT now(), id, 'completed' FROM batch"
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

async fn engine(place: &Place, backlog: &str) -> Cost {
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    run(&mut connection, backlog).await;
    run(&mut connection, &fill(1, 20_000)).await;
    run(&mut connection, "ANALYZE; CHECKPOINT").await;
    let (pages, all) = pages(&mut connection).await;
    let store = Store::open(&schema, &crew(1, BATCH, ClaimMode::Lease, succeed).workers).await.expect("the store opens");
    let ms = claims(&store, async |store: &Store, settlements: &[Settlement]| {
        store.settle(settlements).await.expect("it settles");
    })
    .await;
    close(store, connection, schema).await;
    Cost { ms, pages, all }
}

async fn article(place: &Place, backlog: &str) -> Cost {
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    run(&mut connection, backlog).await;
    let rows = "SELECT g, 'email', '{}', 0, 5 FROM generate_series(1, 20000) AS g";
    run(&mut connection, &format!("INSERT INTO article (id, type, payload, priority, max_retries) {rows}; ANALYZE; CHECKPOINT"))
        .await;
    explained(&mut connection, ARTICLE).await;
    let pages = explained(&mut connection, ARTICLE).await;
    let store = Store::open(&schema, &crew(1, 1, ClaimMode::Transaction, succeed).workers).await.expect("the store opens");
    let ms = claims(&store, async |store: &Store, settlements: &[Settlement]| {
        store.settle(settlements).await.expect("it settles");
    })
    .await;
    close(store, connection, schema).await;
    Cost { ms, pages, all: pages }
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
