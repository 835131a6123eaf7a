//! What a worker does with a job.

use super::http::Caller;
use crate::call::Outcome;
use crate::worker::Request;

/// What a worker does with a job.
#[derive(Debug)]
pub enum Handler {
    /// Calls the downstream over HTTP.
    Http(Caller),
    /// Runs this in the worker's own task: for measuring the engine with nothing behind it. It must not block.
    Inline(fn(&Request) -> Outcome),
}

impl Handler {
    /// Does it, if that takes no waiting.
    pub(super) fn at_once(&self, request: &Request) -> Option<Outcome> {
        match self {
            Handler::Http(_) => None,
            Handler::Inline(run) => Some(run(request)),
        }
    }

    /// Does it, within the request's time-out.
    pub(super) async fn handle(&self, worker: u32, request: &Request) -> Outcome {
        match self {
            Handler::Http(caller) => caller.call(worker, request).await,
            Handler::Inline(run) => run(request),
        }
    }

    /// Calls that failed for want of ports or files on this machine.
    pub(super) fn starved(&self) -> u64 {
        match self {
            Handler::Http(caller) => caller.starved(),
            Handler::Inline(_) => 0,
        }
    }
}
