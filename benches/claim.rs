//! How many jobs a second does the engine move through Postgres? Claim a batch and settle it as completed, beside the same
//! done by hand: one `UPDATE … FOR UPDATE SKIP LOCKED` and one `DELETE`, on a bare table, over one connection.
//!
//! Needs no set-up: the server is a throwaway one that the bench starts, and stops at its end. By hand means without what
//! the engine is for: retries, a record of what became of a job, lease tokens that fence, constraints, the promotion of due jobs.

mod beside;

use std::path::PathBuf;
use std::time::Duration;

use beside::{Pair, time};
use criterion::{Criterion, SamplingMode, Throughput};
use simq::queue::{ClaimMode, How, Settlement};
use simq::real::pg::throwaway::{Options, Throwaway};
use simq::real::pg::{Schema, Store};
use simq::worker::{Settings, Wait};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tokio::runtime::{Builder, Runtime};

const BATCHES: [u32; 3] = [1, 10, 100];
const LEASE: Duration = Duration::from_secs(30);

const READY: &str = "ready (id, type, payload, rank, max_retries)";
const BARE_TABLE: &str = "
    CREATE TABLE bare (
        id          bigint      PRIMARY KEY,
        type        text        NOT NULL,
        payload     text        NOT NULL,
        priority    smallint    NOT NULL,
        created_at  timestamptz NOT NULL DEFAULT now(),
        lease_until timestamptz
    );
    CREATE INDEX bare_available ON bare (priority DESC, created_at, id) WHERE lease_until IS NULL;";
const BARE_CLAIM: &str = "
    UPDATE bare SET lease_until = statement_timestamp() + interval '30 s'
    WHERE id = ANY (ARRAY(
        SELECT id FROM bare WHERE lease_until IS NULL ORDER BY priority DESC, created_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, type, payload";
const BARE_SETTLE: &str = "DELETE FROM bare USING unnest($1::bigint[]) AS settled (id) WHERE bare.id = settled.id";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let guard = Some(PathBuf::from(env!("CARGO_BIN_EXE_simq")));
    let options = Options { guard, ..Options::default() };
    let server = runtime.block_on(Throwaway::start(options)).expect("a throwaway server starts");
    let mut bench = runtime.block_on(Bench::open(&server));
    let mut group = criterion.benchmark_group("claim");
    group.sample_size(20).sampling_mode(SamplingMode::Flat);
    let mut pairs = Vec::new();
    for batch in BATCHES {
        group.throughput(Throughput::Elements(u64::from(batch)));
        let name = format!("claim and settle, batches of {batch}");
        let run = |times| [bench.engine(&runtime, times, batch), bench.bare(&runtime, times, batch)];
        pairs.extend(Pair::bench(&mut group, &name, "the time of SQL by hand", run).map(|pair| (pair, batch)));
    }
    group.finish();
    criterion.final_summary();
    pairs.iter().for_each(|(pair, batch)| pair.tell(Some((u64::from(*batch), "jobs"))));
    runtime.block_on(bench.store.close());
    runtime.block_on(server.stop()).expect("the server stops");
}

/// The engine's table and a bare one, and a connection to each.
struct Bench {
    store: Store,
    connection: PgConnection,
}

impl Bench {
    async fn open(server: &Throwaway) -> Bench {
        let schema = Schema::create(&server.connect_options(), "simq_bench", "simq bench").await.expect("the schema is new");
        let wait = Wait::Due { at_most: Duration::from_millis(200) };
        let settings = Settings { count: 1, slots: 100, connections: 1, claim: ClaimMode::Lease, batch: 100, lease: LEASE, wait };
        let store = Store::open(&schema, &settings).await.expect("the store opens");
        let mut connection = PgConnection::connect_with(schema.options()).await.expect("the server takes connections");
        run(&mut connection, BARE_TABLE).await;
        Bench { store, connection }
    }

    /// Claims and settles so many batches through the engine. Putting the jobs in is not timed.
    fn engine(&mut self, runtime: &Runtime, times: u64, batch: u32) -> Duration {
        runtime.block_on(self.fill(READY, ", 3", times * u64::from(batch)));
        time(times, |_| {
            runtime.block_on(async {
                let claimed = self.store.claim(0, batch, LEASE).await.expect("the store claims");
                assert_eq!(claimed.claims.len(), batch as usize, "there are enough jobs");
                let complete = |claim: &simq::queue::Claim| Settlement { job: claim.job, token: claim.token, how: How::Complete };
                let settlements: Vec<Settlement> = claimed.claims.iter().map(complete).collect();
                let settled = self.store.settle(&settlements).await.expect("the store settles");
                assert_eq!(settled.settled.len(), batch as usize, "no claim was lost");
            });
        })
    }

    /// The same by hand.
    fn bare(&mut self, runtime: &Runtime, times: u64, batch: u32) -> Duration {
        runtime.block_on(self.fill("bare (id, type, payload, priority)", "", times * u64::from(batch)));
        let connection = &mut self.connection;
        time(times, |_| {
            runtime.block_on(async {
                let claim = sqlx::query_as(BARE_CLAIM).bind(i64::from(batch));
                let claimed: Vec<(i64, String, String)> = claim.fetch_all(&mut *connection).await.expect("it claims");
                let ids: Vec<i64> = claimed.into_iter().map(|(id, _, _)| id).collect();
                let settled = sqlx::query(BARE_SETTLE).bind(&ids).execute(&mut *connection).await.expect("it settles");
                assert_eq!(settled.rows_affected(), u64::from(batch), "there are enough jobs");
            });
        })
    }

    /// An empty table, and then one with so many jobs that can be claimed.
    async fn fill(&mut self, table: &str, more: &str, jobs: u64) {
        let name = table.split(' ').next().unwrap_or(table);
        run(&mut self.connection, &format!("TRUNCATE {name}")).await;
        let payload = "'{\"to\":\"customer-' || id || '@example.com\"}'";
        let rows = format!("SELECT id, 'email', {payload}, 0{more} FROM generate_series(1, {jobs}) AS id");
        run(&mut self.connection, &format!("INSERT INTO {table} {rows}; ANALYZE {name}")).await;
    }
}

async fn run(connection: &mut PgConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(connection).await.expect("the server does as it is told");
}
