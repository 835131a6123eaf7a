//! What a store of jobs promises, in words that the worker, the reference store and Postgres share.
//!
//! ```text
//!             claim                 complete
//!  available ───────► running ──────────────────► completed
//!    ▲    ▲            │ │ │
//!    │    │  release,  │ │ └──── discard ────────► discarded
//!    │    └────────────┘ │         ▲
//!    │  lease expired    │ retry   │ lease expired, no retries left
//!    │  (one retry spent)▼         │
//!    └─────── due ─── retryable    └── running
//! ```
//!
//! The promises:
//! * a claim takes jobs that are due, by priority (higher first), then age, which is the number: numbers are given out in order of arrival. How far a
//!   store may bend this is bounded, and said where it does;
//! * a claimed job belongs to nobody else until its lease expires, by the store's clock;
//! * a claim is named by a [`Token`] that no other claim has; only its holder can settle, and a settle whose lease
//!   expired changes nothing and is reported as lost;
//! * a settlement that is sent again is carried out once, and answered alike: a claim is lost only if its lease expired before it was settled;
//! * a claim that expires has spent one retry, so that a job that kills its worker ends too.
//!
//! Only durations cross this border. The store adds them to its own clock, so that nobody else's clock can matter.

mod memory;
mod tokens;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

pub use memory::{Row as MemoryRow, Store as MemoryStore};
pub use tokens::Tokens;

use crate::job::{JobId, Memory, Why};

/// The name of one claim of one job: unique for the life of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

/// A job in the hands of a worker, until the lease expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// The name of this claim.
    pub token: Token,
    /// The job's type.
    pub kind: Arc<str>,
    /// What the handler gets.
    pub payload: Arc<str>,
    /// The job's retry memory.
    pub memory: Memory,
    /// How long the job had been due, by the store's clock, when it was claimed.
    pub lag: Duration,
}

/// The end of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The job.
    pub job: JobId,
    /// Which claim of it.
    pub token: Token,
    /// What becomes of the job.
    pub how: How,
}

/// What becomes of a claimed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is done.
    Complete,
    /// It is tried again, `after` so long from the store's present.
    Retry {
        /// The delay.
        after: Duration,
        /// What went wrong, kept on the job.
        reason: Cow<'static, str>,
    },
    /// It is given up.
    Discard {
        /// Why no further retry.
        why: Why,
        /// What went wrong, kept on the job.
        reason: Cow<'static, str>,
    },
    /// It was never started: back as if never claimed, no retry spent.
    Release,
}

/// How jobs are claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimMode {
    /// A committed lease: claim in one short transaction, work outside it, settle in another. In batches.
    Lease,
    /// The article's: the claiming transaction stays open while the job runs, and holds a connection all the while. One
    /// job at a time.
    Transaction,
}

/// The outcome of a settle, token by token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// These claims are settled, now or by an earlier attempt to settle them.
    pub settled: Vec<Token>,
    /// The leases of these had expired before they were settled: nothing was changed.
    pub lost: Vec<Token>,
}

/// The answer to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The jobs, in claim order. Fewer than asked for: nothing more was free.
    pub claims: Vec<Claim>,
    /// Time until the next waiting job comes due; `None` if none waits.
    pub next_due: Option<Duration>,
}
