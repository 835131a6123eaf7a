//! What a worker is told.

use crate::call::Outcome;
use crate::queue::{Claimed, Settled, Settlement, Token};

/// What a worker is told. Every event but `Woke`, `Notified` and `Drain` answers a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The worker's life begins.
    Started,
    /// The time that [`wake_at`](super::Worker::wake_at) named has come.
    Woke,
    /// There is work: new jobs, or a retry that has come due. Only one worker is told, one that has room.
    Notified,
    /// The answer to a claim.
    Claimed(Claimed),
    /// The answer to a call, or the end of waiting for one.
    Replied {
        /// Whose call.
        token: Token,
        /// How it ended.
        outcome: Outcome,
    },
    /// The answer to a settle.
    Settled(Settled),
    /// The answer to an extension.
    Extended {
        /// Claims that another worker has taken over.
        lost: Vec<Token>,
    },
    /// The answer to a reap.
    Reaped {
        /// Expired claims that went back to the queue.
        returned: u64,
        /// Expired claims whose job had no retries left.
        discarded: u64,
    },
    /// The store did not answer. Whether it did what it was asked is unknown.
    Failed(Operation),
    /// Take no more work; finish what is under way.
    Drain,
}

/// What a store was asked to do when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A claim. If it was carried out all the same, its jobs are what this worker's next claim gets, or their leases expire.
    Claim,
    /// A settle; it is sent again as it was, since settling twice is settling once.
    Settle {
        /// Its number.
        number: u64,
        /// What it was to settle.
        settlements: Vec<Settlement>,
    },
    /// An extension; it is asked for again soon.
    Extend,
    /// A reap; the next one does its work.
    Reap,
}
