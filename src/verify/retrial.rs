//! What backoff is for, in its simplest form: one server, no queue, and whoever finds it busy comes back later.
//!
//! The slower the retries, the fewer they are and the longer jobs wait: theory knows both exactly.

use super::check::{Check, Effort};
use super::formulas::{retrial_orbit, retrial_tries};
use super::play::{EXPONENTIAL, calls, jobs, memoryless, place, scenario, servers, settled, tries};
use crate::workload::Arrival;

pub(super) fn checks(effort: &Effort) -> Vec<Check> {
    [(0.5, 0.1), (0.5, 1.0), (0.7, 0.1), (0.7, 1.0)].into_iter().flat_map(|(load, theta)| one(effort, load, theta)).collect()
}

fn one(effort: &Effort, load: f64, theta: f64) -> [Check; 2] {
    let scenario = scenario(jobs(effort.jobs, Arrival::Poisson { rate: load }), servers(1, 0, EXPONENTIAL));
    let calls = calls(&scenario, &memoryless(1.0 / theta), effort.seed);
    let tries = tries(&calls, effort.jobs);
    let mut arrived = vec![None; tries.len()];
    let mut waits = vec![0.0; tries.len()];
    for call in &calls {
        let first = *arrived[place(call.job)].get_or_insert(call.arrived);
        if let Some(work) = call.work {
            waits[place(call.job)] = work.from.since(first).as_secs_f64();
        }
    }
    let name = |what: &str| format!("load {load}, mean delay {}: {what}", 1.0 / theta);
    [
        Check::of_series(name("tries per job"), retrial_tries(load, theta), settled(&tries)),
        Check::of_series(name("mean wait"), retrial_orbit(load, theta) / load, settled(&waits)),
    ]
}
