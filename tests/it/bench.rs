//! A store on its bench: a schema of its own in a fresh database, jobs put in by hand, and time that passes when it is told to.
//!
//! The store in Postgres takes its server's clock. Here a job's timestamps are moved into the past instead, by minutes, so that
//! the milliseconds which a test really takes never matter.

use std::time::Duration;

use simq::job::JobId;
use simq::queue::ClaimMode;
use simq::real::pg::{Batch, Schema, Store, copy, insert};
use simq::time::Instant;
use simq::worker::{Settings, Wait};
use simq::workload::{Arrival, Group, Job};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use crate::cluster;

pub const MINUTE: Duration = Duration::from_secs(60);

/// A job to put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct New {
    pub id: u64,
    pub priority: i16,
    pub max_retries: u32,
}

/// A schema, and a connection beside the store's.
pub struct Bench {
    pub schema: Schema,
    pub connection: PgConnection,
    batches: u64,
}

impl Bench {
    pub async fn new() -> Bench {
        Bench::in_schema(Schema::create(&cluster::database().await, "simq_bench", "simq test").await.unwrap()).await
    }

    /// In this schema.
    pub async fn in_schema(schema: Schema) -> Bench {
        let connection = PgConnection::connect_with(schema.options()).await.unwrap();
        Bench { schema, connection, batches: 0 }
    }

    /// A store that keeps the order to the letter.
    pub async fn store(&self, claim: ClaimMode, connections: u32) -> Store {
        Store::open_strict(&self.schema, &Bench::settings(claim, connections)).await.unwrap()
    }

    /// A store as runs open it.
    pub async fn quick_store(&self, connections: u32) -> Store {
        Store::open(&self.schema, &Bench::settings(ClaimMode::Lease, connections)).await.unwrap()
    }

    fn settings(claim: ClaimMode, connections: u32) -> Settings {
        let wait = Wait::Due { at_most: MINUTE };
        Settings { count: 1, slots: 1, connections, claim, batch: 1, lease: MINUTE, wait }
    }

    /// Puts jobs in as runs do, for workers that claim under leases.
    pub async fn insert(&mut self, jobs: &[New]) {
        self.insert_for(ClaimMode::Lease, jobs).await;
    }

    /// Puts jobs in as runs do.
    pub async fn insert_for(&mut self, mode: ClaimMode, new: &[New]) {
        let (groups, jobs) = parts(new);
        let batch = self.batch(&groups, &jobs);
        insert(&mut self.connection, batch, mode).await.unwrap();
    }

    /// Puts jobs in by COPY, for workers that claim under leases.
    pub async fn copy(&mut self, new: &[New]) {
        let (groups, jobs) = parts(new);
        let batch = self.batch(&groups, &jobs);
        copy(&mut self.connection, batch).await.unwrap();
    }

    fn batch<'a>(&mut self, groups: &'a [Group], jobs: &'a [Job]) -> Batch<'a> {
        self.batches += 1;
        Batch { producer: -1, number: self.batches, jobs, groups, max_retries: None }
    }

    /// Numbers batches from the beginning again, for producers that nobody has heard of.
    pub fn restart(&mut self) {
        self.batches = 0;
    }

    /// Empties the queue.
    pub async fn clear(&mut self) {
        self.execute("TRUNCATE ready, scheduled, batch, lease, finished, expired, article").await;
    }

    /// Lets time pass.
    pub async fn pass(&mut self, by: Duration) {
        let d = format!("{} * interval '1 microsecond'", by.as_micros());
        let back = format!("created_at = created_at - {d}, schedule_at = schedule_at - {d}");
        let item = format!(
            "ROW(i.id, i.rank, i.type, i.payload, i.retries, i.max_retries, i.created_at - {d}, i.schedule_at - {d}, i.last_delay_ns, \
             i.failure)::job"
        );
        self.execute(&format!(
            "UPDATE ready SET created_at = created_at - {d}; UPDATE scheduled SET {back}; UPDATE article SET {back}; \
             UPDATE lease SET until = until - {d}; UPDATE batch SET items = ARRAY(SELECT {item} FROM unnest(items) AS i)"
        ))
        .await;
    }

    pub async fn execute(&mut self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut self.connection).await.unwrap();
    }

    /// The one value that a query gives, as text.
    pub async fn ask(&mut self, query: &str) -> String {
        let query = format!("SELECT coalesce(({query})::text, 'null')");
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut self.connection).await.unwrap()
    }

    /// A job's state and retries, and why it was given up.
    pub async fn job(&mut self, id: u64) -> String {
        self.ask(&format!("SELECT concat_ws(' ', status, retries, discarded_why) FROM jobs WHERE id = {id}")).await
    }
}

/// New jobs, each a group of its own.
fn parts(new: &[New]) -> (Vec<Group>, Vec<Job>) {
    let group = |new: &New| Group {
        kind: "email".into(),
        count: 1,
        arrival: Arrival::AtOnce,
        at: Duration::ZERO,
        priority: new.priority,
        permanent: 0.0,
        max_retries: new.max_retries,
    };
    let groups: Vec<Group> = new.iter().map(group).collect();
    let job = |(group, new): (usize, &New)| Job { at: Instant::START, id: JobId(new.id), group, malformed: false };
    let jobs: Vec<Job> = new.iter().enumerate().map(job).collect();
    (groups, jobs)
}
