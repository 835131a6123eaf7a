//! The real world: the same workers and the same downstream, on tokio, Postgres and HTTP.
//!
//! ```text
//!  load.rs ──INSERT──► Postgres ◄──claim, settle── drive.rs × workers ──HTTP──► mock.rs ──admit──► Downstream
//!                                                     │ step                        (a thread of its own)
//!                                                     ▼
//!                                                   Worker
//! ```
//! [`run`] plays one policy once: a fresh schema, a fresh downstream, an epoch of its own, everything warmed up before
//! the clock starts. It ends when every job has, at the horizon, or when it is told to stop; then workers finish what they have under
//! way, and the store's rows are read and held against what the workers saw.

pub mod pg;

mod bell;
pub mod calibrate;
mod chaos;
mod clock;
mod drain;
mod drive;
mod handler;
mod http;
mod listen;
mod load;
pub mod machine;
pub mod mock;
mod outcome;
mod probe;
mod run;
mod users;

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;

pub use clock::Clock;
pub use drain::{Crew, Drained, drain, work};
pub use drive::Live;
pub use handler::Handler;
pub use http::{ATTEMPT_HEADER, CALLER_HEADER, Caller, JOB_HEADER};
pub use mock::{Conduct, Mock, Setup};
pub use outcome::Outcome;

pub use crate::metrics::End;
pub use probe::{Probed, probe};
pub use run::run;

use crate::policy::Policy;
use crate::rng::Seed;
use crate::scenario::Scenario;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database.
    #[error(transparent)]
    Database(#[from] pg::Error),
    /// A statement outside the workers, which do not give up.
    #[error("the database said: {0}")]
    Statement(#[from] sqlx::Error),
    /// The downstream service could not be started.
    #[error("the downstream could not be started on 127.0.0.1: {0}")]
    Mock(#[source] std::io::Error),
    /// The scenario restarts a server that is not simq's own.
    #[error(
        "the scenario restarts the database, and this one is not simq's own: run it without --database-url, or take `restart-database` out of its [[chaos]]"
    )]
    NotOurs,
    /// A task panicked.
    #[error("a task of the run died: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// One policy, to be run once.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The policy.
    pub policy: &'a Policy,
    /// The seed of this repetition.
    pub seed: Seed,
    /// The database.
    pub database: &'a PgConnectOptions,
    /// The server is simq's own: it may be told to write a checkpoint first, so that none falls into the run.
    pub own_server: bool,
    /// Restarts the server, if it is simq's own.
    pub restarter: Option<pg::throwaway::Restarter>,
    /// The name of the schema to work in.
    pub schema: String,
    /// The schema's comment.
    pub note: String,
    /// Leave the schema behind.
    pub keep: bool,
    /// Where to publish how the run stands.
    pub live: Arc<Live>,
    /// Turns true when the run is to stop early.
    pub stop: watch::Receiver<bool>,
    /// Keep every worker's steps.
    pub tape: bool,
}
