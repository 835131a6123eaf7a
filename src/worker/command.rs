//! What a worker asks for.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{Call, Label};
use crate::job::JobId;
use crate::queue::{Settlement, Token};

/// What a worker asks its driver to do. Each but `Remind` is answered by one
/// [`Event`](super::Event), or by `Failed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take up to `limit` jobs, exclusive for `lease`.
    Claim {
        /// Most jobs to take, at least 1.
        limit: u32,
        /// How long they are exclusive.
        lease: Duration,
    },
    /// Send an attempt's request to the downstream.
    Call(Request),
    /// Settle claims.
    Settle {
        /// This worker's number for it, rising from settlement to settlement. One that is sent again keeps its number, so that whoever watches
        /// can tell; the store needs no number to carry it out once.
        number: u64,
        /// The claims; never empty.
        settlements: Vec<Settlement>,
    },
    /// Hold on to these claims for another `lease`.
    Extend {
        /// The claims.
        claims: Vec<(JobId, Token)>,
        /// How long from the store's present.
        lease: Duration,
    },
    /// Give expired claims back to the queue.
    Reap,
    /// Tell some worker that has room, this one perhaps, that there is work: so long from now, once for each. Answered by nothing;
    /// what comes of it is a `Notified`.
    Remind {
        /// How long from now.
        after: Vec<Duration>,
    },
}

/// One attempt's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The claim it is made under.
    pub token: Token,
    /// The job.
    pub job: JobId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The job's type: the route that is called.
    pub kind: Arc<str>,
    /// The body.
    pub payload: Arc<str>,
    /// How long to wait for the answer.
    pub timeout: Duration,
}

impl Request {
    /// The request as the downstream model sees it, of `worker`.
    pub fn call(&self, worker: u32) -> Call {
        let caller = Label::of_number(worker);
        Call { route: Label::of(&self.kind), caller, ..Call::new(self.job, self.attempt, &self.payload) }
    }
}
