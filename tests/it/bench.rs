//! A store on its bench: a schema of its own in a fresh database, jobs put in by hand, and time that passes when it is told to.
//!
//! The store in Postgres takes its server's clock. Here a job's timestamps are moved into the past instead, by minutes, so that
//! the milliseconds which a test really takes never matter.

use std::time::Duration;

use simq::queue::ClaimMode;
use simq::real::pg::{Schema, Store};
use simq::worker::{Settings, Wait};
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
}

impl Bench {
    pub async fn new() -> Bench {
        let schema = Schema::create(&cluster::database().await, "simq_bench", "simq test").await.unwrap();
        let connection = PgConnection::connect_with(schema.options()).await.unwrap();
        Bench { schema, connection }
    }

    pub async fn store(&self, claim: ClaimMode, connections: u32) -> Store {
        let wait = Wait::Due { at_most: MINUTE };
        let settings = Settings { count: 1, slots: 1, connections, claim, batch: 1, lease: MINUTE, wait };
        Store::open(&self.schema, &settings).await.unwrap()
    }

    /// Puts jobs in with the statement that runs use, all at one moment.
    pub async fn insert(&mut self, jobs: &[New]) {
        let ids: Vec<i64> = jobs.iter().map(|job| job.id as i64).collect();
        let texts = |text: &str| vec![text.to_owned(); jobs.len()];
        let priorities: Vec<i16> = jobs.iter().map(|job| job.priority).collect();
        let limits: Vec<i32> = jobs.iter().map(|job| job.max_retries as i32).collect();
        sqlx::query(include_str!("../../src/real/pg/insert.sql"))
            .bind(ids)
            .bind(texts("email"))
            .bind(texts("{}"))
            .bind(priorities)
            .bind(limits)
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    /// Lets time pass.
    pub async fn pass(&mut self, by: Duration) {
        let statement = format!(
            "UPDATE jobs SET created_at = created_at - d, schedule_at = schedule_at - d, lease_until = lease_until - d \
             FROM (SELECT {} * interval '1 microsecond' AS d) AS by",
            by.as_micros()
        );
        self.execute(&statement).await;
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
