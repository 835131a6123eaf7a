//! Queues: what random arrivals and service times come to.

use std::time::Duration;

use super::check::{Check, Effort};
use super::formulas::{erlang_b, erlang_c, loss_of_bounded, wait, wait_of_any_shape, wait_p99};
use super::play::{EXPONENTIAL, SECOND, calls, jobs, scenario, servers, settled};
use crate::dist::Dist;
use crate::downstream::Settings;
use crate::policy::{Backoff, Jitter};
use crate::time::seconds;
use crate::workload::Arrival;

/// Room for whoever comes.
const ENDLESS: u32 = u32::MAX;

pub(super) fn checks(effort: &Effort) -> Vec<Check> {
    let mut checks = Vec::new();
    for (count, utilisation) in [(1, 0.5), (1, 0.8), (2, 0.5), (4, 0.8), (10, 0.7)] {
        checks.extend(waiting(effort, count, utilisation));
    }
    if effort.is_long() {
        // What is full forgets slowly: its batches must be longer.
        let longer = Effort { jobs: effort.jobs * 4, ..*effort };
        for (count, utilisation) in [(1, 0.9), (2, 0.9), (8, 0.9), (50, 0.9)] {
            checks.extend(waiting(&longer, count, utilisation));
        }
    }
    for (name, latency, cv2) in shapes() {
        for load in [0.5, 0.8] {
            let waits = waits(effort, servers(1, ENDLESS, latency), load);
            let mean = wait_of_any_shape(load, cv2);
            checks.push(Check::of_series(format!("M/{name}/1 at {load}: mean wait"), mean, &known(&waits)));
        }
    }
    for (load, places) in [(0.8, 5), (0.8, 10), (0.95, 10), (1.0, 10), (1.2, 10), (1.2, 20), (2.0, 10)] {
        let waits = waits(effort, servers(1, places - 1, EXPONENTIAL), load);
        let name = format!("M/M/1/{places} at {load}: share turned away");
        checks.push(Check::of_series(name, loss_of_bounded(load, places), &lost(&waits)));
    }
    for (count, load) in [(1, 0.5), (4, 3.2), (10, 10.0), (20, 16.0), (100, 90.0)] {
        for (shape, latency) in [("M", EXPONENTIAL), ("D", Dist::Constant { value: SECOND })] {
            let waits = waits(effort, servers(count, 0, latency), load);
            let name = format!("M/{shape}/{count}/{count} under {load} Erlang: share turned away");
            checks.push(Check::of_series(name, erlang_b(count, load), &lost(&waits)));
        }
    }
    checks
}

/// M/M/c: the mean wait, who waits at all, and the tail.
fn waiting(effort: &Effort, count: u32, utilisation: f64) -> Vec<Check> {
    let load = utilisation * f64::from(count);
    let waits = known(&waits(effort, servers(count, ENDLESS, EXPONENTIAL), load));
    let share = |beyond: f64| -> Vec<f64> { waits.iter().map(|wait| f64::from(u8::from(*wait > beyond))).collect() };
    let name = |what: &str| format!("M/M/{count} at {utilisation}: {what}");
    let mut checks = vec![
        Check::of_series(name("mean wait"), wait(count, load), &waits),
        Check::of_series(name("share that waits"), erlang_c(count, load), &share(0.0)),
    ];
    if effort.sees_tails() {
        let tail = share(wait_p99(count, load));
        checks.push(Check::of_series(name("share beyond the 99th percentile"), 0.01, &tail));
    }
    checks
}

/// Service times with a mean of 1 and another shape, and the squares of their coefficients of variation.
fn shapes() -> [(&'static str, Dist, f64); 3] {
    // Of a log-normal with σ = 1: the mean is exp(μ + 1/2) = 1, the squared coefficient of variation e − 1.
    let median = (-0.5_f64).exp();
    let z99 = 2.326_347_874_040_841_f64;
    [
        ("D", Dist::Constant { value: SECOND }, 0.0),
        ("U", Dist::Uniform { min: Duration::ZERO, max: 2 * SECOND }, 1.0 / 3.0),
        ("LogN", Dist::LogNormal { median: seconds(median), p99: seconds(median * z99.exp()) }, 1_f64.exp() - 1.0),
    ]
}

/// The wait of each call in seconds, `None` for those turned away, in the order of arrival, once things have settled.
fn waits(effort: &Effort, downstream: Settings, rate: f64) -> Vec<Option<f64>> {
    let scenario = scenario(jobs(effort.jobs, Arrival::Poisson { rate }), downstream);
    let once = super::play::retries(Backoff::None, Jitter::None, None, 0);
    let calls = calls(&scenario, &once, effort.seed);
    let wait = |call: &crate::metrics::Service| call.work.map(|work| work.from.since(call.arrived).as_secs_f64());
    settled(&calls).iter().map(wait).collect()
}

fn known(waits: &[Option<f64>]) -> Vec<f64> {
    waits.iter().flatten().copied().collect()
}

fn lost(waits: &[Option<f64>]) -> Vec<f64> {
    waits.iter().map(|wait| f64::from(u8::from(wait.is_none()))).collect()
}
