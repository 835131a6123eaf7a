//! Delays, asked of policies alone: their means, their variances, and what they add up to.

use std::time::Duration;

use super::check::{Check, Effort, Within, mean_and_error, variance};
use super::play::retries;
use crate::job::JobId;
use crate::policy::{Backoff, Jitter, Policy};
use crate::rng::Stream;

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(10);
const DECORRELATED: Jitter = Jitter::Decorrelated { bound: false, rising: false };

pub(super) fn checks(effort: &Effort) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, jitter, mean, spread) in [("full", Jitter::Full, 0.5, 1.0 / 12.0), ("equal", Jitter::Equal, 0.75, 1.0 / 48.0)] {
        let policy = policy(jitter, Some(CAP));
        // Two on the way up, one at the cap.
        for (n, curve) in [(1, 0.1), (4, 0.8), (9, 10.0_f64)] {
            let delays = delays(effort, &policy, n);
            checks.push(Check::mean(format!("{name} jitter, retry {n}: mean delay, s"), mean * curve, &delays));
            checks.push(variance_of(format!("{name} jitter, retry {n}: variance, s²"), spread * curve * curve, &delays));
        }
    }
    for (retries, none) in [(6, 6.3), (8, 22.7)] {
        for (name, jitter, share) in [("no", Jitter::None, 1.0), ("full", Jitter::Full, 0.5), ("equal", Jitter::Equal, 0.75)] {
            let sums = sums(effort, &policy(jitter.clone(), Some(CAP)), retries);
            let what = format!("{name} jitter, {retries} retries together, s");
            checks.push(if jitter == Jitter::None {
                Check::new(what, none, sums[0], Within::Of(1e-9))
            } else {
                Check::mean(what, share * none, &sums)
            });
        }
    }
    for n in 1..=5_u32 {
        let delays = decorrelated(effort, n);
        let mean = 0.1 * (2.0 * 1.5_f64.powi(n as i32) - 1.0);
        checks.push(Check::mean(format!("decorrelated jitter, retry {n}: mean delay, s"), mean, &delays));
    }
    checks
}

fn policy(jitter: Jitter, cap: Option<Duration>) -> Policy {
    retries(Backoff::Exponential { base: BASE, factor: 2.0 }, jitter, cap, u32::MAX)
}

/// The delay before retry `n` of each of many jobs.
fn delays(effort: &Effort, policy: &Policy, n: u32) -> Vec<f64> {
    let delay = |job| policy.delay(n, None, &mut effort.seed.draw(Stream::Jitter, JobId(job), n)).as_secs_f64();
    (1..=effort.jobs).map(delay).collect()
}

fn sums(effort: &Effort, policy: &Policy, retries: u32) -> Vec<f64> {
    let delay = |job, n| policy.delay(n, None, &mut effort.seed.draw(Stream::Jitter, JobId(job), n)).as_secs_f64();
    (1..=effort.jobs).map(|job| (1..=retries).map(|n| delay(job, n)).sum()).collect()
}

/// Each delay is drawn from the one before.
fn decorrelated(effort: &Effort, n: u32) -> Vec<f64> {
    let policy = policy(DECORRELATED, None);
    let delay = |job: u64| {
        let next =
            |last: Option<Duration>, n: u32| Some(policy.delay(n, last, &mut effort.seed.draw(Stream::Jitter, JobId(job), n)));
        (1..=n).fold(None, next).unwrap_or_default().as_secs_f64()
    };
    (1..=effort.jobs).map(delay).collect()
}

/// The variance, with its standard error by the fourth moment.
fn variance_of(name: String, expected: f64, values: &[f64]) -> Check {
    let (mean, _) = mean_and_error(values);
    let squares: Vec<f64> = values.iter().map(|value| (value - mean).powi(2)).collect();
    let (_, error) = mean_and_error(&squares);
    Check::new(name, expected, variance(values), Within::Errors(error))
}
