//! Taking stock of a run: the workers' records and the store's rows become one record, which is audited, and the harness says what it
//! thinks of itself.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::Plan;
use super::mock::Conduct;
use crate::journal::Tape;
use crate::metrics::{Blow, End, Limit, Recorder, Row, RunRecord, Sample, Stock, Summary, Taken, UserCall, timer_late_p99};
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
    pub(super) rows: Vec<Row>,
    pub(super) crew: Vec<(Recorder, Option<Tape>)>,
    pub(super) loaded: Option<Histogram<u64>>,
    pub(super) conduct: Conduct,
    pub(super) users: Vec<UserCall>,
    pub(super) starved: u64,
    pub(super) transactions: u64,
    pub(super) samples: Vec<Sample>,
    pub(super) blows: Vec<Blow>,
}

/// Beyond these the harness says so: timers and answers at the 99th percentile, and arrivals.
const LATE: Duration = Duration::from_millis(20);
const LATE_ARRIVAL: Duration = Duration::from_millis(50);

impl Outcome {
    pub(super) fn of(plan: &Plan<'_>, found: Found) -> Outcome {
        let warnings = warnings(&found);
        let (recorders, tapes): (Vec<Recorder>, Vec<Option<Tape>>) = found.crew.into_iter().unzip();
        let stock = Stock {
            end: found.end,
            ended: found.ended,
            jobs: found.jobs,
            all_in: found.loaded.is_some(),
            rows: found.rows,
            recorders,
            transactions: found.transactions,
            arrivals: found.conduct.arrivals,
            services: found.conduct.services,
            users: found.users,
            samples: found.samples,
            blows: found.blows,
        };
        let Taken { record, mut summary, breaches } = stock.take(plan.scenario);
        if found.starved > 0 {
            summary.limit = Limit::Harness;
            summary.limit_evidence =
                format!("{} calls failed because this machine had no port or file left for them", found.starved);
        }
        Outcome { end: found.end, summary, record, breaches, warnings, tapes: tapes.into_iter().flatten().collect() }
    }
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
