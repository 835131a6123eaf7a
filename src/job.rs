//! What a job is to the engine: an identity, the retry memory on its row, a state, and why it was given up.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A job's identity: its number in order of arrival, from 1. The same job has the same number under every policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a job carries from attempt to attempt, on its row, so that a policy needs no state and a crash loses none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Retries already spent. The attempt under way is number `retries + 1`.
    pub retries: u32,
    /// Retries allowed; after the attempt that used the last one the job is discarded.
    pub max_retries: u32,
    /// The delay chosen before this attempt; `None` on the first.
    pub last_delay: Option<Duration>,
    /// Time since the job was created, by the store's clock at the claim.
    pub age: Duration,
}

impl Memory {
    /// The number of the attempt under way: the first is 1.
    pub fn attempt(&self) -> u32 {
        self.retries.saturating_add(1)
    }
}

/// Where a job stands. The arrows are drawn in [`crate::queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// May be claimed now.
    Available,
    /// Claimed under a lease.
    Running,
    /// Waits for its next attempt to come due.
    Retryable,
    /// Done.
    Completed,
    /// Given up: out of retries, or a permanent failure.
    Discarded,
}

impl State {
    /// Every state, in the order of a job's life.
    pub const ALL: [State; 5] = [State::Available, State::Running, State::Retryable, State::Completed, State::Discarded];

    /// The word used in the database and in files.
    pub fn name(self) -> &'static str {
        match self {
            State::Available => "available",
            State::Running => "running",
            State::Retryable => "retryable",
            State::Completed => "completed",
            State::Discarded => "discarded",
        }
    }

    /// Whether a job stays in this state for ever.
    pub fn is_terminal(self) -> bool {
        matches!(self, State::Completed | State::Discarded)
    }
}

/// Why a job was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The failure will not go away by trying again.
    Permanent,
    /// No retries left.
    Exhausted,
}
