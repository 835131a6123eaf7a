//! From what was measured to a profile.

use super::alone::{Alone, LARGE};
use super::saturated::{Load, Saturated};
use super::{Calibration, Check, cost, round};
use crate::profile::{Profile, Timer};

pub(super) fn fit(processors: u32, alone: &Alone, saturated: &Saturated) -> Calibration {
    let spent = |load: &Load| f64::from(processors) * load.took.as_secs_f64() * 1e6;
    let (statement, job) = line(&saturated.plain, spent);
    let large = f64::from(LARGE);
    let slope = |many: f64, one: f64| ((many - one) / (large - 1.0)).max(0.01);
    let share = |a: f64, b: f64| if a + b > 0.0 { a / (a + b) } else { 0.5 };
    // A claim and a settlement share what a pair of statements costs as they share the time of a lone pair.
    let of_claim = share(alone.claim_one.median, alone.settle_one.median);
    let claims = slope(alone.claim_many.median, alone.claim_one.median);
    let settles = slope(alone.settle_many.median, alone.settle_one.median);
    let job_of_claim = share(claims, settles);
    let rest = spent(&saturated.retried) - saturated.retried.statements as f64 * statement - saturated.retried.jobs as f64 * job;
    let retry = (rest / saturated.retried.jobs as f64).max(0.0);
    let retry_of_claim = share(
        slope(alone.claim_retries.median, alone.claim_one.median),
        slope(alone.settle_retries.median, alone.settle_one.median),
    );
    let rest = spent(&saturated.called) - saturated.called.statements as f64 * statement - saturated.called.jobs as f64 * job;
    let call = (rest / saturated.called.jobs as f64).max(0.0);
    let insert = slope(alone.insert_many.median, alone.insert_one.median);
    let claim_work = 2.0 * statement * of_claim;
    let look = alone.look.median.min(alone.claim_one.median);
    let other = alone.reap.median.min(claim_work * share(alone.reap.median, look) * 2.0);
    let profile = Profile {
        version: Profile::VERSION,
        about: String::new(),
        processors,
        restart_us: Profile::built_in().restart_us,
        claim: cost([claim_work, job * job_of_claim, retry * retry_of_claim], alone.claim_one),
        settle: cost(
            [2.0 * statement * (1.0 - of_claim), job * (1.0 - job_of_claim), retry * (1.0 - retry_of_claim)],
            alone.settle_one,
        ),
        other: cost([other, 0.0, 0.0], alone.reap),
        insert: cost([(alone.insert_one.median - insert).max(0.0), insert, 0.0], alone.insert_one),
        call: cost([call, 0.0, 0.0], alone.call),
        timer: timer(alone),
    };
    let checks = checks(&profile, alone, saturated, spent);
    Calibration { profile, checks }
}

/// A timer is late by its grain's remainder, half a millisecond in the middle, and by what comes on top.
fn timer(alone: &Alone) -> Timer {
    const GRAIN_US: f64 = 1_000.0;
    let late_us = round((alone.timer.median - GRAIN_US / 2.0).max(0.0));
    Timer { grain_us: GRAIN_US, late_us, late_p99_us: round((alone.timer.p99 - GRAIN_US).max(late_us)) }
}

/// What a statement and what a job cost: the least squares of the relative errors of `spent = statements × a + jobs × b`, neither
/// below zero.
fn line(loads: &[Load], spent: impl Fn(&Load) -> f64) -> (f64, f64) {
    let (mut xx, mut xy, mut yy, mut x, mut y) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for load in loads {
        let spent = spent(load);
        let (a, b) = (load.statements as f64 / spent, load.jobs as f64 / spent);
        (xx, xy, yy, x, y) = (xx + a * a, xy + a * b, yy + b * b, x + a, y + b);
    }
    let determinant = xx * yy - xy * xy;
    if determinant <= f64::EPSILON * xx * yy {
        return (0.0, y / yy.max(f64::MIN_POSITIVE));
    }
    let (a, b) = ((x * yy - y * xy) / determinant, (xx * y - xy * x) / determinant);
    if a < 0.0 {
        (0.0, y / yy)
    } else if b < 0.0 {
        (x / xx, 0.0)
    } else {
        (a, b)
    }
}

fn checks(profile: &Profile, alone: &Alone, saturated: &Saturated, spent: impl Fn(&Load) -> f64) -> Vec<Check> {
    let (claim, settle) = (profile.claim, profile.settle);
    let lone = |what: &str, measured: f64, predicted: f64| Check { what: what.to_owned(), measured, predicted, unit: "us" };
    let large = f64::from(LARGE);
    let mut checks = vec![
        lone("a lone claim of 1", alone.claim_one.median, claim.work_us + claim.work_per_job_us + claim.wait_us),
        lone("a lone claim of 100", alone.claim_many.median, claim.work_us + large * claim.work_per_job_us + claim.wait_us),
        lone("a lone claim of 0", alone.look.median, claim.work_us + claim.wait_us),
        lone("a lone settlement of 1", alone.settle_one.median, settle.work_us + settle.work_per_job_us + settle.wait_us),
        lone(
            "a lone settlement of 100",
            alone.settle_many.median,
            settle.work_us + large * settle.work_per_job_us + settle.wait_us,
        ),
        lone("a lone call", alone.call.median, profile.call.work_us + profile.call.wait_us),
    ];
    let rate = |load: &Load| load.jobs as f64 / load.took.as_secs_f64();
    let work = |load: &Load| {
        load.statements as f64 * (claim.work_us + settle.work_us) / 2.0
            + load.jobs as f64 * (claim.work_per_job_us + settle.work_per_job_us)
    };
    let mut loaded = |what: String, load: &Load, work: f64| {
        checks.push(Check { what, measured: rate(load), predicted: rate(load) * spent(load) / work, unit: "jobs/s" });
    };
    for load in &saturated.plain {
        loaded(format!("full load, batches of {}", load.batch), load, work(load));
    }
    let retry = saturated.retried.jobs as f64 * (claim.work_per_retry_us + settle.work_per_retry_us);
    loaded("full load, each retried once".to_owned(), &saturated.retried, work(&saturated.retried) + retry);
    let calls = saturated.called.jobs as f64 * profile.call.work_us;
    loaded("full load, each calls".to_owned(), &saturated.called, work(&saturated.called) + calls);
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_is_found_again() {
        let load = |statements: u64, jobs: u64| Load {
            batch: 1,
            jobs,
            statements,
            took: Duration::from_micros(statements * 100 + jobs * 7),
        };
        let (statement, job) =
            line(&[load(2_000, 1_000), load(400, 5_000), load(100, 9_000)], |load| load.took.as_secs_f64() * 1e6);
        assert!((statement - 100.0).abs() < 0.01 && (job - 7.0).abs() < 0.01, "{statement}, {job}");
    }

    #[test]
    fn what_would_be_negative_is_zero() {
        let load = |jobs: u64| Load { batch: 1, jobs, statements: 10_000 / jobs, took: Duration::from_micros(jobs * 7) };
        let (statement, job) = line(&[load(1_000), load(5_000)], |load| load.took.as_secs_f64() * 1e6);
        assert!(statement >= 0.0 && job > 6.0, "{statement}, {job}");
    }
}
