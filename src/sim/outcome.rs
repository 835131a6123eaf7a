//! Taking stock of a run in virtual time, as `real` does of its own.

use super::Plan;
use super::store::View;
use super::world::Went;
use crate::job::JobId;
use crate::journal::{Entry, Sink, Tape, What};
use crate::metrics::{End, Recorder, Row, RunRecord, Services, Stock, Summary, Taken};
use crate::workload::Job;

/// One policy's run.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Everything recorded.
    pub record: RunRecord,
    /// The figures.
    pub summary: Summary,
    /// What the audit found wrong; must be empty.
    pub breaches: Vec<String>,
    /// All workers' steps, if they were asked for.
    pub tape: Option<Tape>,
    /// Things that the calendar held.
    pub events: u64,
}

/// A recorder for each worker, by its number.
pub(super) struct Recorders(pub(super) Vec<Recorder>);

impl Recorders {
    fn of(&mut self, worker: u32) -> &mut Recorder {
        let worker = worker as usize;
        if worker >= self.0.len() {
            self.0.resize_with(worker + 1, Recorder::default);
        }
        &mut self.0[worker]
    }
}

impl Sink for Recorders {
    fn record(&mut self, entry: Entry<'_>) {
        if let What::Stepped { worker, .. } = entry.what {
            self.of(worker).record(entry);
        }
    }
}

impl Outcome {
    pub(super) fn of(
        plan: &Plan<'_>,
        jobs: Vec<Job>,
        went: Went,
        mut recorders: Recorders,
        services: Services,
        tape: Option<Tape>,
    ) -> Outcome {
        for worker in &went.died {
            recorders.of(*worker).die();
        }
        let row = |(job, view): (JobId, View)| {
            let View { state, why, retries, created, due } = view;
            Row { job, state, why, retries, last_due: due.since(created) }
        };
        let stock = Stock {
            end: went.end,
            ended: went.ended,
            all_in: went.database.store.len() == jobs.len(),
            jobs,
            rows: went.database.store.rows(went.ended).map(row).collect(),
            recorders: recorders.0,
            transactions: went.database.transactions,
            arrivals: went.arrivals,
            services: services.0,
            users: went.users,
            samples: Vec::new(),
            blows: went.blows,
        };
        let Taken { record, summary, breaches } = stock.take(plan.scenario);
        Outcome { end: went.end, record, summary, breaches, tape, events: went.events }
    }
}
