//! The record of a run: one row per attempt and one per job.

use std::time::Duration;

use super::{Blow, Sample, Service, Tally, UserCall};
use crate::call::Outcome;
use crate::job::{JobId, State, Why};
use crate::time::Instant;

/// One attempt of one job, from due to settled. All instants are on the run's one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The job.
    pub job: JobId,
    /// Its number, from 1; above 1 it is a retry.
    pub attempt: u32,
    /// The worker that claimed it, from 0.
    pub worker: u32,
    /// When it came due: the claim's moment less the lag that the store's clock measured.
    pub due: Instant,
    /// When the claim's answer reached the worker.
    pub claimed: Instant,
    /// When the call was sent: the request, as the downstream's peak counts it.
    pub sent: Instant,
    /// When the worker had the answer, or gave up waiting; `None` if the run ended first.
    pub answered: Option<Instant>,
    /// When the store confirmed the settlement; `None` if the run ended first.
    pub settled: Option<Instant>,
    /// How the call ended; `None` if the run ended first.
    pub outcome: Option<Outcome>,
    /// What became of the attempt.
    pub fate: Fate,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Still under way when the run ended.
    Open,
    /// Completed the job.
    Completed,
    /// Rescheduled with this delay.
    Retried(Duration),
    /// The job was given up.
    Discarded(Why),
    /// The lease had been lost: the settlement was refused.
    Lost,
    /// Its worker was killed: whether its settlement, if there was one, was carried out, nobody was told.
    Killed,
}

impl Fate {
    /// The word for it in files.
    pub fn name(&self) -> &'static str {
        match self {
            Fate::Open => "open",
            Fate::Completed => "completed",
            Fate::Retried(_) => "retried",
            Fate::Discarded(Why::Permanent) => "discarded-permanent",
            Fate::Discarded(Why::Exhausted) => "discarded-exhausted",
            Fate::Lost => "lost",
            Fate::Killed => "killed",
        }
    }
}

/// One job as the run left it, taken from the store, not from the attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The job.
    pub job: JobId,
    /// Its type, as the index of its group in the scenario.
    pub group: usize,
    /// When it arrived, as planned.
    pub arrived: Instant,
    /// Its payload is malformed: no policy could have completed it.
    pub malformed: bool,
    /// The state on its row.
    pub state: State,
    /// Why it was discarded, where it was.
    pub why: Option<Why>,
    /// Retries on its row.
    pub retries: u32,
    /// From its creation to when it was last due, by the store's clock; `None` if it never reached the store.
    pub last_due: Option<Duration>,
    /// When its last settlement was confirmed, if it is in a terminal state.
    pub finished: Option<Instant>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every job ended.
    Finished,
    /// The horizon came first.
    Horizon,
    /// It was told to stop.
    Stopped,
}

/// Everything recorded of one policy's run.
#[derive(Clone, Debug, Default)]
pub struct RunRecord {
    /// Every attempt that was sent, in that order.
    pub attempts: Vec<Attempt>,
    /// Every job, by number.
    pub jobs: Vec<JobRecord>,
    /// When the run ended: the last settlement, or the horizon, or the interruption.
    pub ended: Instant,
    /// What was counted beside the attempts.
    pub tally: Tally,
    /// Transactions begun in the store for the workers.
    pub transactions: u64,
    /// Calls that reached the downstream, by its own count.
    pub arrivals_at_downstream: u64,
    /// Every call that the downstream took, in the order of arrival.
    pub services: Vec<Service>,
    /// Every call of an ordinary user.
    pub users: Vec<UserCall>,
    /// Looks at the machine, in order of time; none in virtual time.
    pub samples: Vec<Sample>,
    /// What befell workers, connections and the database, in order of time.
    pub blows: Vec<Blow>,
}
