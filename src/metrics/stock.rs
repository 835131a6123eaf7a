//! Taking stock: what a run left behind, in whatever world, becomes a record, figures and an audit.

use std::time::Duration;

use super::{Attempt, Blow, End, Fate, JobRecord, Lens, Recorder, RunRecord, Sample, Service, Summary, Terms, UserCall};
use super::{audit, ledger};
use crate::call::Outcome;
use crate::job::{JobId, State, Why};
use crate::queue::ClaimMode;
use crate::scenario::Scenario;
use crate::time::Instant;
use crate::workload::Job;

/// A job's row at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The job.
    pub job: JobId,
    /// Its state.
    pub state: State,
    /// Why it was discarded.
    pub why: Option<Why>,
    /// Retries spent.
    pub retries: u32,
    /// From its creation to when it was last due.
    pub last_due: Duration,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Stock {
    /// How it ended.
    pub end: End,
    /// When its last worker had gone.
    pub ended: Instant,
    /// The jobs that were to come, by number, from 1.
    pub jobs: Vec<Job>,
    /// All of them have been put in.
    pub all_in: bool,
    /// What the store holds.
    pub rows: Vec<Row>,
    /// What was recorded of each worker.
    pub recorders: Vec<Recorder>,
    /// Transactions begun for the workers.
    pub transactions: u64,
    /// Calls that reached the downstream.
    pub arrivals: u64,
    /// What it did with them.
    pub services: Vec<Service>,
    /// Calls of ordinary users.
    pub users: Vec<UserCall>,
    /// Looks at the machine.
    pub samples: Vec<Sample>,
    /// What befell the run.
    pub blows: Vec<Blow>,
}

/// A stock that was taken.
#[derive(Debug)]
pub struct Taken {
    /// Everything recorded.
    pub record: RunRecord,
    /// The figures.
    pub summary: Summary,
    /// What the audit found wrong; must be empty.
    pub breaches: Vec<String>,
}

impl Stock {
    /// Takes it.
    pub fn take(self, scenario: &Scenario) -> Taken {
        let planned: Vec<JobId> = self.jobs.iter().map(|job| job.id).collect();
        let stored: Vec<JobId> = self.rows.iter().map(|row| row.job).collect();
        let mut breaches = ledger(&planned, &stored, self.all_in);
        let (attempts, tally) = Recorder::merge(self.recorders);
        let mut jobs = job_records(&self.jobs, &self.rows, &ends(&attempts, self.jobs.len()));
        if self.end == End::Stopped {
            // What had not arrived was neither done nor lost.
            jobs.retain(|job| job.last_due.is_some());
        }
        let last_settled = attempts.iter().filter_map(|attempt| attempt.settled).max();
        let ended = match self.end {
            End::Finished => last_settled.unwrap_or(self.ended),
            End::Horizon | End::Stopped => self.ended,
        };
        let record = RunRecord {
            attempts,
            jobs,
            ended,
            tally,
            transactions: self.transactions,
            arrivals_at_downstream: self.arrivals,
            services: self.services,
            users: self.users,
            samples: self.samples,
            blows: self.blows,
        };
        let lease = (scenario.workers.claim == ClaimMode::Lease).then_some(scenario.workers.lease);
        breaches.extend(audit(&record, Terms { complete: self.end == End::Finished, lease }));
        let summary = Summary::of(&record, &Lens::of(scenario));
        Taken { record, summary, breaches }
    }
}

/// A job's place in a list of all, by number.
fn place(job: JobId) -> usize {
    (job.0 as usize).wrapping_sub(1)
}

/// When each job ended: its last settlement was confirmed or, where nobody was told of it, its last good answer came.
fn ends(attempts: &[Attempt], jobs: usize) -> Vec<Option<Instant>> {
    let mut ends = vec![None; jobs];
    let answered = attempts.iter().filter(|attempt| attempt.outcome == Some(Outcome::Ok));
    let ending = attempts.iter().filter(|attempt| matches!(attempt.fate, Fate::Completed | Fate::Discarded(_)));
    let times = answered
        .filter_map(|attempt| Some((attempt.job, attempt.answered?)))
        .chain(ending.filter_map(|attempt| Some((attempt.job, attempt.settled?))));
    for (job, at) in times {
        if let Some(end) = ends.get_mut(place(job)) {
            *end = Some(at);
        }
    }
    ends
}

fn job_records(jobs: &[Job], rows: &[Row], ends: &[Option<Instant>]) -> Vec<JobRecord> {
    let mut by_number: Vec<Option<&Row>> = vec![None; jobs.len()];
    for row in rows {
        if let Some(place) = by_number.get_mut(place(row.job)) {
            *place = Some(row);
        }
    }
    let record = |job: &Job| {
        let row = by_number[place(job.id)];
        let state = row.map_or(State::Available, |row| row.state);
        JobRecord {
            job: job.id,
            group: job.group,
            arrived: job.at,
            malformed: job.malformed,
            state,
            why: row.and_then(|row| row.why),
            retries: row.map_or(0, |row| row.retries),
            last_due: row.map(|row| row.last_due),
            finished: ends[place(job.id)].filter(|_| state.is_terminal()),
        }
    };
    jobs.iter().map(record).collect()
}
