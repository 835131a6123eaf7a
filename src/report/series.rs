//! What happened over time: bins for files and charts, and the curve of completed jobs.
//!
//! Bins are for drawing. Peaks are never read from them: a burst that straddles an edge is split (see
//! [`busiest_window`](crate::metrics::busiest_window)).

use std::time::Duration;

use crate::call::Outcome;
use crate::job::State;
use crate::metrics::RunRecord;
use crate::report::Comparison;
use crate::scenario::Scenario;
use crate::time::{Instant, nanos};

/// One bin of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bin {
    /// Where it begins.
    pub(super) start: Instant,
    /// Calls sent in it.
    pub(super) requests: u64,
    /// Those that were a job's first.
    pub(super) first_attempts: u64,
    /// Those that were not.
    pub(super) retries: u64,
    /// Jobs completed in it.
    pub(super) completed: u64,
    /// Calls that ended in it and had failed.
    pub(super) failed: u64,
    /// Jobs given up in it.
    pub(super) discarded: u64,
    /// Jobs that had arrived by its start and were not yet in a terminal state.
    pub(super) backlog: u64,
}

/// How long the longest run of a comparison lasted, at least a millisecond.
pub(super) fn span(comparison: &Comparison) -> Duration {
    comparison.runs.iter().map(|run| run.record.ended.since_start()).max().unwrap_or_default().max(Duration::from_millis(1))
}

/// The bin width for runs of this length: the shortest of 1, 2 and 5 times a power of ten, from 1 ms, that makes at most
/// 400 bins, hence 160 to 400 of them.
pub(super) fn bin_width(span: Duration) -> Duration {
    let least = nanos(span).div_ceil(400);
    let mut width = 1_000_000_u64;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if width >= least {
            break;
        }
        width = (width as f64 * factor) as u64;
    }
    Duration::from_nanos(width)
}

/// The bins of one run. What lies past the run's end counts into the last.
pub(super) fn bins(record: &RunRecord, width: Duration) -> Vec<Bin> {
    let width = nanos(width).max(1);
    let count = record.ended.as_nanos().div_ceil(width).max(1) as usize;
    let mut bins = vec![Bin::default(); count];
    for (i, bin) in bins.iter_mut().enumerate() {
        bin.start = Instant::from_nanos(i as u64 * width);
    }
    let index = |at: Instant| ((at.as_nanos() / width) as usize).min(count - 1);
    for attempt in &record.attempts {
        let bin = &mut bins[index(attempt.sent)];
        bin.requests += 1;
        if attempt.attempt > 1 {
            bin.retries += 1;
        } else {
            bin.first_attempts += 1;
        }
        if let (Some(answered), Some(outcome)) = (attempt.answered, attempt.outcome)
            && outcome != Outcome::Ok
        {
            bins[index(answered)].failed += 1;
        }
    }
    for job in &record.jobs {
        match (job.state, job.finished) {
            (State::Completed, Some(at)) => bins[index(at)].completed += 1,
            (State::Discarded, Some(at)) => bins[index(at)].discarded += 1,
            _ => {}
        }
    }
    fill_backlog(&mut bins, record, width);
    bins
}

/// A job waits from its arrival to its end: it counts at every bin start in between.
fn fill_backlog(bins: &mut [Bin], record: &RunRecord, width: u64) {
    let mut change = vec![0_i64; bins.len() + 1];
    let next_start = |at: Instant| (at.as_nanos().div_ceil(width) as usize).min(bins.len());
    for job in &record.jobs {
        change[next_start(job.arrived)] += 1;
        if let Some(at) = job.finished {
            change[next_start(at.max(job.arrived))] -= 1;
        }
    }
    let mut waiting = 0;
    for (bin, change) in bins.iter_mut().zip(change) {
        waiting += change;
        bin.backlog = u64::try_from(waiting).unwrap_or(0);
    }
}

/// The modes of the outages at an instant, joined by `+`; empty where all is well.
pub(super) fn modes(scenario: &Scenario, at: Instant) -> String {
    let outages = scenario.downstream.outages.iter().filter(|outage| outage.mode.is_outage());
    let names: Vec<&str> = outages.filter(|outage| outage.turn(at).is_some()).map(|outage| outage.mode.name()).collect();
    names.join("+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::metrics::JobRecord;
    use proptest::prelude::*;

    #[test]
    fn widths_are_round_and_follow_the_duration() {
        let width = |ms| bin_width(Duration::from_millis(ms)).as_millis();
        assert_eq!([width(1), width(2_000), width(10_000), width(14_000), width(60_000)], [1, 5, 50, 50, 200]);
        assert_eq!(width(3_600_000), 10_000);
    }

    #[test]
    fn the_backlog_is_what_waits_at_a_bins_start() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let job = |id, arrived, finished: Option<u64>| JobRecord {
            job: JobId(id),
            group: 0,
            last_due: None,
            arrived: at(arrived),
            malformed: false,
            state: if finished.is_some() { State::Completed } else { State::Retryable },
            why: None,
            retries: 0,
            finished: finished.map(at),
        };
        let record = RunRecord {
            attempts: vec![],
            jobs: vec![job(1, 0, Some(10)), job(2, 5, None), job(3, 5, Some(25)), job(4, 900, None)],
            ended: at(40),
            ..RunRecord::default()
        };
        let bins = bins(&record, Duration::from_millis(10));
        assert_eq!(bins.iter().map(|bin| bin.backlog).collect::<Vec<_>>(), [1, 2, 2, 1]);
        assert_eq!(bins.iter().map(|bin| bin.completed).sum::<u64>(), 2);
    }

    proptest! {
        #[test]
        fn there_are_never_more_than_400_bins(ms in 1..100_000_000_u64) {
            let span = Duration::from_millis(ms);
            let record = RunRecord { ended: Instant::START + span, ..RunRecord::default() };
            let count = bins(&record, bin_width(span)).len();
            prop_assert!(count <= 400);
            prop_assert!(ms < 400 || count >= 160, "{count} bins for {ms} ms");
        }
    }
}
