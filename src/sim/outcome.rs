//! Taking stock of a run in virtual time, as `real` does of its own.

use super::Plan;
use super::world::Went;
use crate::journal::Tape;
use crate::metrics::{End, JobRecord, Lens, Recorder, RunRecord, Services, Summary, audit, finishes};
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
        jobs: &[Job],
        went: Went,
        recorder: Recorder,
        services: Services,
        tape: Option<Tape>,
    ) -> Outcome {
        let (attempts, tally) = Recorder::merge(vec![recorder]);
        let finishes = finishes(&attempts);
        let mut rows = went.database.store.rows(went.ended);
        let record = |job: &Job| {
            let row = rows.next().map(|(_, row)| row);
            let state = row.map_or(crate::job::State::Available, |row| row.state);
            JobRecord {
                job: job.id,
                group: job.group,
                arrived: job.at,
                malformed: job.malformed,
                state,
                why: row.and_then(|row| row.why),
                retries: row.map_or(0, |row| row.retries),
                last_due: row.map(|row| row.due.since(row.created)),
                finished: finishes.get(job.id).filter(|_| state.is_terminal()),
            }
        };
        let mut jobs: Vec<JobRecord> = jobs.iter().map(record).collect();
        if went.end == End::Stopped {
            // What had not arrived was neither done nor lost.
            jobs.retain(|job| job.last_due.is_some());
        }
        let ended = match went.end {
            End::Finished => attempts.iter().filter_map(|attempt| attempt.settled).max().unwrap_or(went.ended),
            End::Horizon | End::Stopped => went.ended,
        };
        let record = RunRecord {
            attempts,
            jobs,
            ended,
            tally,
            transactions: went.database.transactions,
            arrivals_at_downstream: went.arrivals,
            services: services.0,
            users: went.users,
            samples: Vec::new(),
        };
        let breaches = audit(&record, went.end == End::Finished);
        let summary = Summary::of(&record, &lens(plan));
        Outcome { end: went.end, record, summary, breaches, tape, events: went.events, pending: went.pending }
    }
}

fn lens(plan: &Plan<'_>) -> Lens {
    let workers = &plan.scenario.workers;
    Lens {
        stampede_window: plan.scenario.stampede_window,
        outages: plan.scenario.spells().iter().map(|outage| outage.window).collect(),
        workers: u64::from(workers.count),
        slots: u64::from(workers.count) * u64::from(workers.slots),
        client_timeout: plan.scenario.downstream.client_timeout,
        capacity: plan.scenario.downstream.capacity(),
    }
}
