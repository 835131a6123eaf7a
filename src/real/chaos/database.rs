//! What is done to the database and to the connections: cut, stopped and started, held up.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Executor};
use tokio::sync::watch;

use crate::real::clock::Clock;
use crate::real::pg::Schema;
use crate::real::pg::throwaway::Restarter;
use crate::scenario::chaos::Restart;
use crate::time::Instant;

/// The name of connections that chaos itself uses, so that it does not cut its own.
const NAME: &str = "simq chaos";
/// How long a server may take to come back, and how often it is looked for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// The database of a run, as chaos sees it.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) schema: Schema,
    pub(super) restarter: Option<Restarter>,
    pub(super) clock: Clock,
    /// The run is over.
    pub(super) over: watch::Receiver<bool>,
}

impl Database {
    /// Ends every connection of this run, and says how many those were. No privilege is needed to end one's own.
    pub(super) async fn cut(&self) -> Result<u64, String> {
        let mut connection = self.connect().await.map_err(|error| away(&error))?;
        let statement = sqlx::query_scalar::<_, i64>(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE application_name = $1 AND usename = current_user AND datname = current_database()",
        );
        let cut = statement.bind(self.schema.name()).fetch_one(&mut connection).await.map_err(|error| away(&error))?;
        // It has done its work, however politely it goes.
        let _ = connection.close().await;
        Ok(cut as u64)
    }

    /// Restarts the server, and waits until it takes connections again.
    pub(super) async fn restart(&self, how: Restart) -> Result<u64, String> {
        let restarter = self.restarter.as_ref().ok_or("the server is not simq's own")?;
        let before = self.started().await.ok();
        restarter.restart(how).await.map_err(|error| format!("the server's guard does not answer: {error}"))?;
        let deadline = self.clock.now() + PATIENCE;
        while self.clock.now() < deadline {
            match self.started().await {
                Ok(started) if before.as_ref() != Some(&started) => return Ok(1),
                Ok(_) | Err(_) => self.clock.sleep_until(self.clock.now() + LOOK).await,
            }
        }
        Err(format!("the server did not come back within {} s", PATIENCE.as_secs()))
    }

    /// Holds a snapshot open until then, or until the run is over or the connection breaks.
    pub(super) async fn hold(&self, until: Instant) -> Result<u64, String> {
        let mut connection = self.connect().await.map_err(|error| away(&error))?;
        let held = async {
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
            // The first query takes the snapshot, and a number of its own makes the transaction one that others may wait for.
            connection.execute("SELECT pg_current_xact_id()").await.map(drop)
        };
        held.await.map_err(|error: sqlx::Error| away(&error))?;
        let mut over = self.over.clone();
        tokio::select! {
            () = self.clock.sleep_until(until) => {}
            _ = over.wait_for(|over| *over) => {}
        }
        // If the connection broke meanwhile, the server has let go of the snapshot long since.
        match connection.execute("ROLLBACK").await {
            Ok(_) => Ok(1),
            Err(_) => Err("the connection that held the transaction was cut".to_owned()),
        }
    }

    async fn started(&self) -> Result<String, sqlx::Error> {
        let mut connection = self.connect().await?;
        let started = sqlx::query_scalar("SELECT pg_postmaster_start_time()::text").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(started)
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let options: PgConnectOptions = self.schema.options().clone().application_name(NAME);
        PgConnection::connect_with(&options).await
    }
}

fn away(error: &sqlx::Error) -> String {
    format!("the database was away: {error}")
}
