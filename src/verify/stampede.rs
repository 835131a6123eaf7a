//! Stampedes: jobs that fail together and come back.
//!
//! Full jitter throws balls into bins: whoever knows the number of jobs and the backoff knows the peak. And a herd of a thousand against a
//! service of 200 calls a second, down for ten seconds, is simple enough for every try to be counted by hand.

use std::time::Duration;

use super::check::{Check, Effort, Within, mean_and_error};
use super::formulas::harmonic;
use super::play::{SECOND, calls, jobs, memoryless, retries, scenario, servers};
use crate::dist::Dist;
use crate::downstream::{Hint, LimiterKind, Mode, Outage, RateLimit, Settings};
use crate::metrics::Service;
use crate::policy::{Backoff, Jitter, Policy};
use crate::rng::Seed;
use crate::time::{Instant, Window};
use crate::workload::Arrival;

/// Jobs, bins, the exact mean of the fullest bin.
const BINS: [(u64, u64, f64); 6] = [
    (100, 10, 15.124_527),
    (100, 100, 4.232_595),
    (500, 20, 34.770_191),
    (1000, 10, 115.663_582),
    (1000, 100, 18.761_660),
    (2000, 50, 54.902_704),
];

const MS: Duration = Duration::from_millis(1);

pub(super) fn checks(effort: &Effort) -> Vec<Check> {
    let mut checks: Vec<Check> = BINS.into_iter().map(|(jobs, bins, mean)| balls(effort, jobs, bins, mean)).collect();
    for jobs in [10, 100] {
        let lasts: Vec<f64> = seeds(effort).map(|seed| last(jobs, seed)).collect();
        checks.push(Check::mean(format!("{jobs} exponential delays of 1 s: the longest"), harmonic(jobs), &lasts));
    }
    checks.extend(herd_exactly(effort));
    checks.extend(herd_with_jitter(effort));
    checks
}

/// The peak of the first retries over ten seconds, in so many bins.
fn balls(effort: &Effort, count: u64, bins: u64, expected: f64) -> Check {
    let policy = retries(Backoff::Constant { delay: 10 * SECOND }, Jitter::Full, None, u32::MAX);
    let width = 10_000_000_000 / bins;
    let peaks: Vec<f64> = seeds(effort)
        .map(|seed| {
            let mut counts = vec![0_u32; bins as usize];
            for call in failing_first(count, &policy, seed).iter().filter(|call| call.attempt == 2) {
                counts[(call.arrived.as_nanos() / width) as usize] += 1;
            }
            f64::from(counts.into_iter().max().unwrap_or(0))
        })
        .collect();
    Check::mean(format!("{count} jobs, full jitter over 10 s: peak of {} ms", width / 1_000_000), expected, &peaks)
}

/// When the last of `count` jobs that failed together comes back.
fn last(count: u32, seed: Seed) -> f64 {
    let calls = failing_first(count.into(), &memoryless(1.0), seed);
    calls.last().map_or(f64::NAN, |call| call.arrived.as_secs_f64())
}

/// All jobs at once, and the service is down for the first nanosecond.
fn failing_first(count: u64, policy: &Policy, seed: Seed) -> Vec<Service> {
    let outage = Outage::plain(Window::starting(Duration::ZERO, Duration::from_nanos(1)), UNAVAILABLE);
    let downstream = Settings { outages: vec![outage], ..servers(1, 0, Dist::Constant { value: Duration::ZERO }) };
    calls(&scenario(jobs(count, Arrival::AtOnce), downstream), policy, seed)
}

const UNAVAILABLE: Mode = Mode::Unavailable { retry_after: None, dated: false };

/// A thousand at once; down until 10 s, then 200 calls succeed in each second.
fn herd(policy: &Policy, seed: Seed) -> Vec<Service> {
    let down = Outage::plain(Window::starting(Duration::ZERO, 10 * SECOND), UNAVAILABLE);
    let limit = RateLimit {
        limiter: LimiterKind::FixedWindow,
        rate: 200.0,
        burst: 1,
        per: SECOND,
        per_caller: false,
        retry_after: Hint::None,
        dated: false,
    };
    let limited = Outage::plain(Window::starting(10 * SECOND, 1000 * SECOND), Mode::RateLimit(limit));
    let downstream = Settings { outages: vec![down, limited], ..servers(1, 0, Dist::Constant { value: Duration::ZERO }) };
    calls(&scenario(jobs(1000, Arrival::AtOnce), downstream), policy, seed)
}

fn exponential(jitter: Jitter) -> Policy {
    retries(Backoff::Exponential { base: 100 * MS, factor: 2.0 }, jitter, Some(10 * SECOND), u32::MAX)
}

/// Most calls in an aligned bin of so many milliseconds from 10 s on.
fn peak(calls: &[Service], ms: u64) -> f64 {
    let after = calls.iter().filter(|call| call.arrived >= Instant::START + 10 * SECOND);
    let mut bins = std::collections::BTreeMap::<u64, u32>::new();
    after.for_each(|call| *bins.entry(call.arrived.as_nanos() / (ms * 1_000_000)).or_default() += 1);
    f64::from(bins.into_values().max().unwrap_or(0))
}

fn done(calls: &[Service]) -> Vec<f64> {
    calls.iter().filter(|call| call.work.is_some()).map(|call| call.arrived.as_secs_f64()).collect()
}

fn herd_exactly(effort: &Effort) -> Vec<Check> {
    let constant = retries(Backoff::Constant { delay: 100 * MS }, Jitter::None, None, u32::MAX);
    let cells = [
        ("constant 0.1 s", constant, [121_000.0, 8200.0, 1000.0, 12.0, 14.0]),
        ("exponential, no jitter", exponential(Jitter::None), [10_000.0, 1000.0, 1000.0, 32.7, 52.7]),
    ];
    let mut checks = Vec::new();
    for (name, policy, expected) in cells {
        let calls = herd(&policy, effort.seed);
        let done = done(&calls);
        let figures = [calls.len() as f64, peak(&calls, 1000), peak(&calls, 100), done[done.len() / 2 - 1], done[done.len() - 1]];
        let names = ["tries in all", "peak of 1 s after it", "peak of 100 ms after it", "median done, s", "last done, s"];
        for ((what, expected), figure) in names.into_iter().zip(expected).zip(figures) {
            checks.push(Check::exact(format!("herd of 1,000, {name}: {what}"), expected, figure));
        }
    }
    checks
}

/// The published figures are means of 100 runs themselves.
fn herd_with_jitter(effort: &Effort) -> Vec<Check> {
    let policy = exponential(Jitter::Full);
    let runs: Vec<[f64; 4]> = seeds(effort)
        .map(|seed| {
            let calls = herd(&policy, seed);
            let done = done(&calls);
            [calls.len() as f64, peak(&calls, 1000), peak(&calls, 100), done[done.len() - 1]]
        })
        .collect();
    let published = [
        ("tries in all", 9439.5, 22.4),
        ("peak of 1 s after it", 177.6, 10.9),
        ("peak of 100 ms after it", 25.7, 2.7),
        ("last done, s", 19.73, 0.19),
    ];
    let check = |(place, (what, mean, sd)): (usize, (&str, f64, f64))| {
        let values: Vec<f64> = runs.iter().map(|run| run[place]).collect();
        let (measured, _) = mean_and_error(&values);
        let error = (sd * sd / values.len() as f64 + sd * sd / 100.0).sqrt();
        Check::new(format!("herd of 1,000, full jitter: {what}"), mean, measured, Within::Errors(error))
    };
    published.into_iter().enumerate().map(check).collect()
}

fn seeds(effort: &Effort) -> impl Iterator<Item = Seed> {
    let seed = effort.seed;
    (1..=effort.runs).map(move |run| seed.repetition(run))
}
