//! Taking stock of a run: the workers' records and the store's rows become one record, which is audited, and the harness says what it
//! thinks of itself.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::Plan;
use super::mock::Conduct;
use super::pg::JobRow;
use crate::job::State;
use crate::journal::Tape;
use crate::metrics::{
    End, JobRecord, Lens, Limit, Recorder, RunRecord, Sample, Summary, UserCall, audit, finishes, timer_late_p99,
};
use crate::time::Instant;
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
    /// Why the harness does not trust its own figures; empty if it does.
    pub warnings: Vec<String>,
    /// Every worker's steps, if they were asked for.
    pub tapes: Vec<Tape>,
}

/// What is left on the field.
pub(super) struct Found {
    pub(super) end: End,
    pub(super) ended: Instant,
    pub(super) jobs: Vec<Job>,
    pub(super) rows: Vec<JobRow>,
    pub(super) crew: Vec<(Recorder, Option<Tape>)>,
    pub(super) loaded: Option<Histogram<u64>>,
    pub(super) conduct: Conduct,
    pub(super) users: Vec<UserCall>,
    pub(super) starved: u64,
    pub(super) transactions: u64,
    pub(super) samples: Vec<Sample>,
}

/// Beyond these the harness says so: timers and answers at the 99th percentile, and arrivals.
const LATE: Duration = Duration::from_millis(20);
const LATE_ARRIVAL: Duration = Duration::from_millis(50);

impl Outcome {
    pub(super) fn of(plan: &Plan<'_>, found: Found) -> Outcome {
        let warnings = warnings(&found);
        let mut breaches = Vec::new();
        if found.loaded.is_some() && found.rows.len() != found.jobs.len() {
            breaches.push(format!("{} jobs were put in and the store holds {}", found.jobs.len(), found.rows.len()));
        }
        let (recorders, tapes): (Vec<Recorder>, Vec<Option<Tape>>) = found.crew.into_iter().unzip();
        let (attempts, tally) = Recorder::merge(recorders);
        let mut jobs = job_records(&found.jobs, &found.rows, &finishes(&attempts));
        if found.end == End::Stopped {
            // What had not arrived was neither done nor lost.
            jobs.retain(|job| job.last_due.is_some());
        }
        let last_settled = attempts.iter().filter_map(|attempt| attempt.settled).max();
        let ended = match found.end {
            End::Finished => last_settled.unwrap_or(found.ended),
            End::Horizon | End::Stopped => found.ended,
        };
        let record = RunRecord {
            attempts,
            jobs,
            ended,
            tally,
            transactions: found.transactions,
            arrivals_at_downstream: found.conduct.arrivals,
            services: found.conduct.services,
            users: found.users,
            samples: found.samples,
        };
        breaches.extend(audit(&record, found.end == End::Finished));
        let mut summary = Summary::of(&record, &lens(plan));
        if found.starved > 0 {
            summary.limit = Limit::Harness;
            summary.limit_evidence =
                format!("{} calls failed because this machine had no port or file left for them", found.starved);
        }
        Outcome { end: found.end, summary, record, breaches, warnings, tapes: tapes.into_iter().flatten().collect() }
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

fn job_records(jobs: &[Job], rows: &[JobRow], finishes: &crate::metrics::Finishes) -> Vec<JobRecord> {
    let mut rows = rows.iter().peekable();
    let record = |job: &Job| {
        let row = rows.next_if(|row| row.job == job.id);
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
            finished: finishes.get(job.id).filter(|_| state.is_terminal()),
        }
    };
    jobs.iter().map(record).collect()
}

fn warnings(found: &Found) -> Vec<String> {
    let mut warnings = Vec::new();
    let p99 = |histogram: &Histogram<u64>| Duration::from_micros(histogram.value_at_quantile(0.99));
    let mut late = |what: &str, by: Duration| {
        if by > LATE {
            warnings.push(format!(
                "{what} {} ms late at the 99th percentile (up to {} ms is good)",
                by.as_millis(),
                LATE.as_millis()
            ));
        }
    };
    late("timers ran", timer_late_p99(&found.samples));
    late("the downstream's answers left", p99(&found.conduct.lateness));
    if let Some(loaded) = &found.loaded {
        let on_time = loaded.percentile_below(LATE_ARRIVAL.as_micros() as u64);
        if on_time < 99.0 {
            warnings.push(format!(
                "{:.1} % of the jobs were put in more than {} ms late",
                100.0 - on_time,
                LATE_ARRIVAL.as_millis()
            ));
        }
    }
    if found.starved > 0 {
        warnings.push(format!(
            "{} calls failed because this machine had no port or file left for them, not because of the downstream: raise `ulimit -n`",
            found.starved
        ));
    }
    warnings
}
