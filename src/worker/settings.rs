//! How many workers, how much each takes on, and how it learns of work.

use std::time::Duration;

use serde::Serialize;

use crate::queue::ClaimMode;

/// The worker processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// How many workers, at least 1.
    pub count: u32,
    /// Attempts that one worker has under way at once, at least 1. Also the most that are made again if it dies.
    pub slots: u32,
    /// Database connections that all workers share, at least 1.
    pub connections: u32,
    /// How jobs are claimed.
    pub claim: ClaimMode,
    /// Most jobs taken by one claim, at least 1; 1 in transaction mode.
    pub batch: u32,
    /// How long a claim is exclusive without being extended.
    pub lease: Duration,
    /// How an idle worker learns of work.
    pub wait: Wait,
}

/// How an idle worker learns of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "wait", rename_all = "kebab-case")]
pub enum Wait {
    /// It asks every so often, each worker at a phase of its own.
    Poll {
        /// The period, above zero.
        every: Duration,
    },
    /// It sleeps until the next waiting job is due, and asks at least this often.
    Due {
        /// The longest sleep, above zero.
        at_most: Duration,
    },
    /// As `Due`, and the database tells it of new jobs (LISTEN and NOTIFY).
    Listen {
        /// The longest sleep, above zero.
        at_most: Duration,
    },
}
