//! What came after the last outage: whether the downstream recovered by itself, and for whom it worked.
//!
//! A *metastable failure* is one whose cause is gone and which stays all the same: calls that time out are retried, the
//! retries fill the queue, and whoever waits in it times out. It is read off what was recorded:
//!
//! 1. After the end of the last outage time is cut into bins of the callers' time-out, half a second at least. A bin is *down* if more than
//!    half of the calls sent in it failed, though trying again might have helped. It has *recovered* with the first bin that is not down
//!    and is followed by two more (bins without calls aside). If the last of several jobs had come by then it was
//!    not the downstream that recovered, but the load that ended.
//! 2. It is metastable if it is down for longer after the outage than the outage lasted (three times as long, if it then recovers by
//!    itself), and longer than three time-outs, while first calls alone (of jobs and of users) were fewer than it has capacity for.
//!
//! Work is *wasted* that ends when its caller has given up. Source of the notion: Bronson et al., "Metastable Failures
//! in Distributed Systems", HotOS 2021.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::by_job::ByJob;
use super::{Attempt, Lens, RunRecord, UserCall};
use crate::call::Outcome;
use crate::job::JobId;
use crate::time::{Instant, Window, nanos};

/// What came after the last outage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aftermath {
    /// When the last outage ended.
    pub outage_ended: Instant,
    /// For how long more than half of the calls went on failing; to the end of the run if it did not recover.
    pub down_for: Duration,
    /// Whether it recovered by itself, under the load it had.
    pub recovered: bool,
    /// Whether it came back only when jobs had stopped coming.
    pub load_ended: bool,
    /// Whether the retries alone kept it down.
    pub metastable: bool,
    /// First calls per second while it was down.
    pub first_calls: f64,
    /// All calls per second while it was down.
    pub calls: f64,
    /// The share of its work while it was down that was for callers who had given up; `None` without work.
    pub wasted_work: Option<f64>,
}

/// Bins that in a row must be well.
const WELL: usize = 3;
const SHORTEST_BIN: Duration = Duration::from_millis(500);

/// A call, of a job or a user.
#[derive(Clone, Copy)]
struct Sent {
    at: Instant,
    first: bool,
    /// `None` if it had not ended.
    failed: Option<bool>,
}

impl Aftermath {
    /// What came after; `None` without an outage, or if nothing was sent after it.
    pub(super) fn of(record: &RunRecord, lens: &Lens) -> Option<Aftermath> {
        let outage = last_outage(&lens.outages)?;
        let calls: Vec<Sent> = sent(record).into_iter().filter(|call| call.at >= outage.until).collect();
        let last = calls.iter().map(|call| call.at).max()?;
        let width = lens.client_timeout.max(SHORTEST_BIN);
        let recovery = recovery(&calls, outage.until, width);
        let down = Window { from: outage.until, until: recovery.unwrap_or(last) };
        let within: Vec<&Sent> = calls.iter().filter(|call| down.contains(call.at)).collect();
        let seconds = down.length().as_secs_f64().max(1e-9);
        let first_calls = within.iter().filter(|call| call.first).count() as f64 / seconds;
        // Jobs that come one after another, and of which none comes any more when it is well again.
        let last_job = record.attempts.iter().filter(|attempt| attempt.attempt == 1).map(|attempt| attempt.sent).max();
        let load_ended = recovery.zip(last_job).is_some_and(|(well, last)| last > outage.until + width && well + width > last);
        let recovered = recovery.is_some() && !load_ended;
        let dust = outage.length() * if recovered { 3 } else { 1 };
        let long = down.length() > dust.max(lens.client_timeout * 3);
        Some(Aftermath {
            outage_ended: outage.until,
            down_for: down.length(),
            recovered,
            load_ended,
            metastable: long && first_calls < lens.capacity,
            first_calls,
            calls: within.len() as f64 / seconds,
            wasted_work: wasted_share(record, Some(down)),
        })
    }
}

/// The last outage, with those that it overlaps.
fn last_outage(outages: &[Window]) -> Option<Window> {
    let mut merged: Vec<Window> = Vec::new();
    for outage in outages {
        match merged.last_mut() {
            Some(last) if outage.from <= last.until => last.until = last.until.max(outage.until),
            _ => merged.push(*outage),
        }
    }
    merged.pop()
}

fn sent(record: &RunRecord) -> Vec<Sent> {
    let jobs = record.attempts.iter().map(|attempt| Sent {
        at: attempt.sent,
        first: attempt.attempt == 1,
        failed: attempt.outcome.map(|outcome| outcome.is_transient()),
    });
    let users = record.users.iter().map(|call| Sent {
        at: call.planned,
        first: true,
        failed: call.outcome.map(|outcome| outcome.is_transient()),
    });
    jobs.chain(users).collect()
}

/// The start of the first bin from which on it is well.
fn recovery(calls: &[Sent], from: Instant, width: Duration) -> Option<Instant> {
    let mut bins: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for call in calls {
        if let Some(failed) = call.failed {
            let bin = bins.entry(nanos(call.at.since(from)) / nanos(width)).or_default();
            *bin = (bin.0 + 1, bin.1 + u64::from(failed));
        }
    }
    let bins: Vec<(u64, bool)> = bins.into_iter().map(|(n, (sent, failed))| (n, failed * 2 > sent)).collect();
    let well = (0..bins.len()).find(|first| bins[*first..].iter().take(WELL).all(|(_, down)| !down))?;
    // From the outage's end, if it was never down.
    Some(if well == 0 { from } else { from + Duration::from_nanos(nanos(width).saturating_mul(bins[well].0)) })
}

/// The share of the downstream's work, of that which ended `within`, whose callers had given up; `None` without work.
pub(super) fn wasted_share(record: &RunRecord, within: Option<Window>) -> Option<f64> {
    let mut works = works(record).filter(|(work, _)| within.is_none_or(|window| window.contains(work.until)));
    let waited_in_vain = |outcome: Option<Outcome>| outcome == Some(Outcome::TimedOut);
    let mut outcomes = record.attempts.iter().map(|attempt| attempt.outcome).chain(record.users.iter().map(|call| call.outcome));
    if !outcomes.any(waited_in_vain) {
        return works.any(|(work, _)| !work.length().is_zero()).then_some(0.0);
    }
    let (mut all, mut wasted) = (0.0, 0.0);
    for (work, in_vain) in works {
        let seconds = work.length().as_secs_f64();
        all += seconds;
        wasted += if in_vain { seconds } else { 0.0 };
    }
    (all > 0.0).then(|| wasted / all)
}

/// Every piece of work, and whether its caller had given up when it was done. Callers of whom nothing is known are left out.
pub fn works(record: &RunRecord) -> impl Iterator<Item = (Window, bool)> {
    let jobs = LazyCell::new(|| ByJob::of(&record.attempts));
    let users: BTreeMap<JobId, &UserCall> = record.users.iter().map(|call| (call.number, call)).collect();
    // Calls arrive in the order in which they were sent, but for a few: the next one is worth a look before the index is asked.
    let mut next = record.attempts.iter();
    record.services.iter().filter_map(move |service| {
        let is_it = |attempt: &&Attempt| (attempt.job, attempt.attempt) == (service.job, service.attempt);
        let user = users.get(&service.job);
        let beside = if user.is_none() { next.next().filter(is_it) } else { None };
        let work = service.work?;
        let (answered, outcome) = match user {
            Some(call) => (call.answered, call.outcome),
            None => {
                let attempt = beside.or_else(|| jobs.of_job(service.job).rfind(is_it))?;
                (attempt.answered, attempt.outcome)
            }
        };
        Some((work, outcome? == Outcome::TimedOut && answered? < work.until))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Fate, Service};

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A call every 10 ms for `secs`, of which `retries` in ten are retries; down until `until_ms`.
    fn record(secs: u64, until_ms: u64, retries: u64) -> RunRecord {
        let mut record = RunRecord { ended: at(secs * 1000), ..RunRecord::default() };
        for i in 0..secs * 100 {
            let (sent, down) = (at(i * 10), i * 10 < until_ms);
            let outcome = if down { Outcome::TimedOut } else { Outcome::Ok };
            let answered = Some(sent + Duration::from_millis(if down { 200 } else { 20 }));
            let attempt = if i % 10 < retries { 2 } else { 1 };
            let (job, settled) = (JobId(i), answered);
            record.attempts.push(Attempt {
                job,
                attempt,
                worker: 0,
                due: sent,
                claimed: sent,
                sent,
                answered,
                settled,
                outcome: Some(outcome),
                fate: Fate::Completed,
            });
            let from = sent + Duration::from_millis(if down { 290 } else { 10 });
            let work = Some(Window { from, until: from + Duration::from_millis(10) });
            record.services.push(Service { job, attempt, arrived: sent, work, outcome: Some(Outcome::Ok) });
        }
        record
    }

    fn lens(capacity: f64) -> Lens {
        Lens {
            stampede_window: Duration::from_millis(100),
            outages: vec![Window { from: at(1000), until: at(2500) }, Window { from: at(2000), until: at(3000) }],
            workers: 1,
            slots: 4,
            client_timeout: Duration::from_millis(200),
            capacity,
        }
    }

    fn of(record: &RunRecord, capacity: f64) -> Aftermath {
        Aftermath::of(record, &lens(capacity)).expect("there was an outage")
    }

    #[test]
    fn what_comes_back_at_once_has_recovered() {
        let aftermath = of(&record(10, 3000, 8), 50.0);
        assert!(aftermath.recovered && !aftermath.metastable && aftermath.down_for.is_zero(), "{aftermath:?}");
    }

    #[test]
    fn what_retries_keep_down_to_the_end_is_metastable_and_works_for_nobody() {
        let aftermath = of(&record(10, 10_000, 8), 50.0);
        assert!(!aftermath.recovered && aftermath.metastable, "{aftermath:?}");
        assert_eq!(aftermath.outage_ended, at(3000));
        assert_eq!(aftermath.wasted_work, Some(1.0));
        assert!((aftermath.calls - 100.0).abs() < 1.0 && (aftermath.first_calls - 20.0).abs() < 1.0, "{aftermath:?}");
    }

    #[test]
    fn what_comes_back_when_jobs_stop_coming_has_not_recovered_by_itself() {
        let mut record = record(20, 12_000, 8);
        record.attempts.iter_mut().filter(|attempt| attempt.sent > at(11_500)).for_each(|attempt| attempt.attempt = 2);
        let aftermath = of(&record, 50.0);
        assert!(aftermath.metastable && !aftermath.recovered && aftermath.load_ended, "{aftermath:?}");
    }

    #[test]
    fn too_much_load_is_no_metastable_failure_and_a_late_recovery_is_one() {
        assert!(!of(&record(10, 10_000, 0), 50.0).metastable, "first calls alone are too many");
        let late = of(&record(20, 12_000, 8), 50.0);
        assert!(late.recovered && late.metastable, "{late:?}");
        assert_eq!(late.down_for, Duration::from_secs(9));
        let soon = of(&record(20, 4_000, 8), 50.0);
        assert!(soon.recovered && !soon.metastable, "a second after two of outage is no more than the dust settling");
    }
}
