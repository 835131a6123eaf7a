//! Taking stock of a run in virtual time, as `real` does of its own.

use super::Plan;
use super::store::View;
use super::world::Went;
use crate::job::JobId;
use crate::journal::Tape;
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
    /// How many it held at once, on average.
    pub pending: usize,
}

impl Outcome {
    pub(super) fn of(
        plan: &Plan<'_>,
        jobs: Vec<Job>,
        went: Went,
        mut recorder: Recorder,
        services: Services,
        tape: Option<Tape>,
    ) -> Outcome {
        for worker in &went.died {
            recorder.bury(*worker);
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
            recorders: vec![recorder],
            transactions: went.database.transactions,
            arrivals: went.arrivals,
            services: services.0,
            users: went.users,
            samples: Vec::new(),
            blows: went.blows,
        };
        let Taken { record, summary, breaches } = stock.take(plan.scenario);
        Outcome { end: went.end, record, summary, breaches, tape, events: went.events, pending: went.pending }
    }
}
