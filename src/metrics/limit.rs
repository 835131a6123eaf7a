//! What bounded the request rate: the policy, the downstream, the database or simq itself.
//!
//! Work that is due and not claimed waits for something. While any does, each slot is at one of four things: waiting for the
//! downstream, waiting for a settlement, free while its worker's claim is under way, or free while its worker sleeps and does not
//! know. The second and third are the database's; the fourth is the price of how workers wait for work. If the
//! processors were full, or timers ran late, none of this can be told apart from the machine's own limit, and that is said instead.

use std::time::Duration;

use serde::Serialize;

use super::RunRecord;
use crate::time::{Instant, Window};

/// What bounded the request rate while work was waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Nothing: a slot was free whenever a job came due.
    Policy,
    /// Slots were waiting for the downstream.
    Downstream,
    /// Slots were waiting for claims and settlements.
    Database,
    /// Slots were free, and their workers asleep: nobody had told them of the work.
    Wakeup,
    /// The harness or the machine: timers ran late or the processors were full.
    Harness,
}

/// A look at the machine in the course of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Share of all processors that was busy since the last sample, 0 to 1; `None` where the system does not tell.
    pub machine: Option<f64>,
    /// Share of all processors that simq itself used.
    pub simq: Option<f64>,
    /// How late a timer was.
    pub timer_late: Duration,
}

/// Work that waited longer than this waited for something; a claim takes a millisecond or two when nothing is in its way.
const WAITED: Duration = Duration::from_millis(10);
/// Below this share of the run, waiting is not what shaped it.
const HARDLY: f64 = 0.02;
/// Processors fuller than this are full.
const FULL: f64 = 0.95;
/// Timers later than this at the 99th percentile spoil a measurement in milliseconds.
const LATE: Duration = Duration::from_millis(20);

/// What slots did while due jobs waited, as shares of their time; together 1.
#[derive(Clone, Copy, Debug)]
struct Shares {
    calling: f64,
    settling: f64,
    claiming: f64,
    asleep: f64,
}

/// What bounded the request rate of this run on `workers` workers with `slots` slots in all, and one sentence that says how it
/// shows.
pub(super) fn limit(record: &RunRecord, workers: u64, slots: u64) -> (Limit, String) {
    let waiting = waiting(record);
    let waited: f64 = waiting.iter().map(|window| window.length().as_secs_f64()).sum();
    let run = record.ended.as_secs_f64().max(1e-9);
    let late = timer_late_p99(&record.samples);
    if late > LATE {
        let evidence =
            format!("timers ran {:.0} ms late at the 99th percentile: this machine was too busy to measure on", ms(late));
        return (Limit::Harness, evidence);
    }
    if waited / run < HARDLY {
        // An empty sum is -0.0.
        let share = (100.0 * waited / run).abs();
        let evidence = format!("due jobs waited for more than {} ms during {share:.1} % of the run only", WAITED.as_millis());
        return (Limit::Policy, evidence);
    }
    let shares = shares(record, &waiting, workers as f64, slots as f64);
    let (machine, simq) = busy(&record.samples, &waiting);
    let full = machine.is_some_and(|share| share > FULL);
    let own = simq.zip(machine).is_some_and(|(simq, machine)| simq > machine / 2.0);
    let database = shares.settling + shares.claiming;
    let limit = match shares {
        Shares { calling, asleep, .. } if calling >= database.max(asleep) => Limit::Downstream,
        _ if full && own => Limit::Harness,
        Shares { asleep, .. } if asleep > database => Limit::Wakeup,
        _ => Limit::Database,
    };
    (limit, evidence(waited, run, shares, machine.zip(simq)))
}

fn evidence(waited: f64, run: f64, shares: Shares, processors: Option<(f64, f64)>) -> String {
    let percent = |share: f64| (100.0 * share).round();
    let slots = format!(
        "while due jobs waited ({waited:.1} s of {run:.1} s), slots spent {} % of their time on the downstream, {} % on settling, {} % on claiming and {} % unaware",
        percent(shares.calling),
        percent(shares.settling),
        percent(shares.claiming),
        percent(shares.asleep),
    );
    match processors {
        Some((machine, simq)) => {
            format!("{slots}; the processors were {} % busy, {} % with simq itself", percent(machine), percent(simq))
        }
        None => slots,
    }
}

fn shares(record: &RunRecord, waiting: &[Window], workers: f64, slots: f64) -> Shares {
    let total: f64 = waiting.iter().map(|window| window.length().as_secs_f64()).sum();
    let (calling, settling) = slot_time(record, waiting);
    let (calling, settling) = (calling / (total * slots), settling / (total * slots));
    let free = (1.0 - calling - settling).max(0.0);
    let out: f64 = record.tally.claim_windows.iter().map(|claim| inside(waiting, claim.from, claim.until)).sum();
    let claiming = free * (out / (total * workers)).min(1.0);
    Shares { calling, settling, claiming, asleep: free - claiming }
}

/// How late timers were at the 99th percentile.
pub fn timer_late_p99(samples: &[Sample]) -> Duration {
    let mut late: Vec<Duration> = samples.iter().map(|sample| sample.timer_late).collect();
    late.sort_unstable();
    late.get((late.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

/// The times during which some due job had waited, merged.
fn waiting(record: &RunRecord) -> Vec<Window> {
    let mut spans: Vec<Window> = record
        .attempts
        .iter()
        .filter(|attempt| attempt.claimed.since(attempt.due) > WAITED)
        .map(|attempt| Window { from: attempt.due, until: attempt.claimed })
        .collect();
    spans.sort_by_key(|span| span.from);
    let mut merged: Vec<Window> = Vec::new();
    for span in spans {
        match merged.last_mut().filter(|last| span.from <= last.until) {
            Some(last) => last.until = last.until.max(span.until),
            None => merged.push(span),
        }
    }
    merged
}

/// Seconds that slots spent calling and settling inside the windows.
fn slot_time(record: &RunRecord, windows: &[Window]) -> (f64, f64) {
    let (mut calling, mut settling) = (0.0, 0.0);
    for attempt in &record.attempts {
        let answered = attempt.answered.unwrap_or(record.ended);
        let settled = attempt.settled.unwrap_or(record.ended);
        calling += inside(windows, attempt.sent, answered);
        settling += inside(windows, answered, settled);
    }
    (calling, settling)
}

/// Seconds of [from, until) that lie inside the windows, which are ordered and apart.
fn inside(windows: &[Window], from: Instant, until: Instant) -> f64 {
    let first = windows.partition_point(|window| window.until <= from);
    let touching = windows[first..].iter().take_while(|window| window.from < until);
    touching.map(|window| until.min(window.until).since(from.max(window.from)).as_secs_f64()).sum()
}

/// Mean shares of the processors over samples inside the windows.
fn busy(samples: &[Sample], windows: &[Window]) -> (Option<f64>, Option<f64>) {
    let within: Vec<&Sample> = samples.iter().filter(|sample| windows.iter().any(|window| window.contains(sample.at))).collect();
    let mean = |share: fn(&Sample) -> Option<f64>| {
        let shares: Vec<f64> = within.iter().filter_map(|sample| share(sample)).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    };
    (mean(|sample| sample.machine), mean(|sample| sample.simq))
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
