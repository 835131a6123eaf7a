//! The server, fresh schemas on it, and what its processes cost.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use simq::policy::Policy;
use simq::queue::ClaimMode;
use simq::real::pg::Schema;
use simq::real::pg::throwaway::{Options, Throwaway};
use simq::real::{Crew, Handler};
use simq::rng::Seed;
use simq::worker::{Request, Settings, Wait};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

pub struct Place {
    server: Throwaway,
    schemas: Cell<u32>,
}

/// What a stretch of work took: wall time, and processor time here and in the server.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    pub wall: Duration,
    pub client: Duration,
    pub server: Duration,
}

impl Place {
    pub async fn open() -> Place {
        let guard = Some(PathBuf::from(env!("CARGO_BIN_EXE_simq")));
        let server = Throwaway::start(Options { guard, ..Options::default() }).await.expect("a throwaway server starts");
        Place { server, schemas: Cell::new(0) }
    }

    pub async fn close(self) {
        self.server.stop().await.expect("the server stops");
    }

    /// An empty queue in a schema of its own.
    pub async fn schema(&self) -> Schema {
        let number = self.schemas.replace(self.schemas.get() + 1);
        let name = format!("simq_bench_{number}");
        Schema::create(&self.server.connect_options(), &name, "simq bench").await.expect("the schema is new")
    }

    /// Measures work.
    pub async fn spend<T>(&self, work: impl Future<Output = T>) -> (T, Spent) {
        let (client, server, began) = (own(), self.of_server(), Instant::now());
        let done = work.await;
        let spent = Spent { wall: began.elapsed(), client: own() - client, server: self.of_server() - server };
        (done, spent)
    }

    /// Processor time of the postmaster, of its children, and of those that it has outlived.
    fn of_server(&self) -> Duration {
        let postmaster = self.server.server_pid();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let ticks = pids.filter_map(|pid| {
            let stat = stat(&pid.to_string())?;
            let own = stat[11] + stat[12];
            match (pid == postmaster, stat[1] == u64::from(postmaster)) {
                (true, _) => Some(own + stat[13] + stat[14]),
                (false, true) => Some(own),
                (false, false) => None,
            }
        });
        Duration::from_millis(10 * ticks.sum::<u64>())
    }
}

/// Processor time of this process. Linux counts it in hundredths of a second.
fn own() -> Duration {
    stat("self").map_or(Duration::ZERO, |stat| Duration::from_millis(10 * (stat[11] + stat[12])))
}

/// The numbers of `/proc/<pid>/stat` from the state on (which reads as 0).
fn stat(pid: &str) -> Option<Vec<u64>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let numbers: Vec<u64> = fields.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    (numbers.len() > 15).then_some(numbers)
}

pub async fn connect(schema: &Schema) -> PgConnection {
    PgConnection::connect_with(schema.options()).await.expect("the server takes connections")
}

pub async fn run(connection: &mut PgConnection, statements: &str) {
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(connection).await.expect("the server does as it is told");
}

/// New jobs numbered from `first`, due at once, with the payload that `simq run` sends.
pub fn fill(first: u64, jobs: u64) -> String {
    let last = first + jobs - 1;
    format!(
        "INSERT INTO ready (id, rank, type, payload, max_retries)
         SELECT id, 0, 'email', '{{\"to\":\"customer-' || id || '@example.com\"}}', 5
         FROM generate_series({first}, {last}) AS id"
    )
}

pub async fn settle_in(connection: &mut PgConnection) {
    run(connection, "VACUUM ANALYZE").await;
    run(connection, "CHECKPOINT").await;
}

/// So many workers that claim `batch` at a time, and do nothing with a job.
pub fn crew(count: u32, batch: u32, mode: ClaimMode, handler: fn(&Request) -> simq::call::Outcome) -> Crew {
    let slots = if mode == ClaimMode::Transaction { 1 } else { batch };
    let lease = Duration::from_secs(30);
    let wait = Wait::Due { at_most: Duration::from_millis(200) };
    let policy = Policy { classify: true, ..Policy::default() };
    let workers = Settings { count, slots, connections: count, claim: mode, batch, lease, wait };
    Crew { workers, policy, seed: Seed(1), handler: Handler::Inline(handler) }
}

pub fn succeed(_: &Request) -> simq::call::Outcome {
    simq::call::Outcome::Ok
}

/// Every fifth job fails at its first attempt.
pub fn fail_a_fifth(request: &Request) -> simq::call::Outcome {
    if request.attempt == 1 && request.job.0.is_multiple_of(5) {
        simq::call::Outcome::status(503)
    } else {
        simq::call::Outcome::Ok
    }
}
