//! What the downstream did with each call: the downstream's side of a run.

use std::collections::BTreeMap;

use crate::call::{Admission, Outcome, Reply, Ticket};
use crate::job::JobId;
use crate::journal::{Entry, Sink, What};
use crate::time::{Instant, Window};

/// A call as the downstream took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The job; of an ordinary user's call its number.
    pub job: JobId,
    /// The attempt.
    pub attempt: u32,
    /// When it arrived.
    pub arrived: Instant,
    /// When a server works on it; `None` if none does.
    pub work: Option<Window>,
    /// What it was answered; `None` if nothing.
    pub outcome: Option<Outcome>,
}

/// The sink that keeps every call that the downstream takes, in that order.
#[derive(Clone, Debug, Default)]
pub struct Services(pub Vec<Service>, BTreeMap<Ticket, usize>);

impl Services {
    fn settle(&mut self, place: usize, admission: &Admission) {
        let service = &mut self.0[place];
        service.work = admission.work;
        service.outcome = match admission.reply {
            Reply::Answer { outcome, .. } | Reply::Slowly { outcome, .. } => Some(outcome),
            Reply::Silence | Reply::Refuse | Reply::Waits(_) => None,
        };
    }
}

impl Sink for Services {
    fn record(&mut self, entry: Entry<'_>) {
        match entry.what {
            What::Admitted { call, admission } => {
                let (job, attempt) = (call.job, call.attempt);
                self.0.push(Service { job, attempt, arrived: entry.at, work: None, outcome: None });
                self.settle(self.0.len() - 1, admission);
                if let Reply::Waits(ticket) = admission.reply {
                    self.1.insert(ticket, self.0.len() - 1);
                }
            }
            What::Released { ticket, admission } => {
                if let Some(place) = self.1.remove(&ticket) {
                    self.settle(place, admission);
                }
            }
            What::Arrived(_) | What::Stepped { .. } => {}
        }
    }
}

/// An ordinary user's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserCall {
    /// Its number, in the place of a job's.
    pub number: JobId,
    /// When it was to be made: what its latency counts from, so that a late harness can't hide.
    pub planned: Instant,
    /// When the user had an answer, or gave up waiting; `None` if the run ended first.
    pub answered: Option<Instant>,
    /// How it ended.
    pub outcome: Option<Outcome>,
}

impl UserCall {
    /// Whether it has ended, and not well.
    pub fn failed(&self) -> bool {
        self.outcome.is_some_and(|outcome| outcome != Outcome::Ok)
    }
}
