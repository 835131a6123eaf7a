//! How many tries a job takes where each fails with a probability of its own, and what a budget makes of it.

use super::check::{Check, Effort, Within};
use super::play::{SECOND, calls, jobs, retries, scenario, servers, tries};
use crate::dist::Dist;
use crate::downstream::{Mode, Outage, Settings};
use crate::metrics::Service;
use crate::policy::{Backoff, Budget, BudgetRule, Jitter, Policy, Scope};
use crate::time::Window;
use crate::workload::Arrival;

pub(super) fn checks(effort: &Effort) -> Vec<Check> {
    let cells = [(0.1, 1), (0.1, 3), (0.3, 1), (0.3, 3), (0.3, 5), (0.5, 1), (0.5, 3), (0.5, 5), (0.5, 10), (0.9, 3), (0.9, 10)];
    let mut checks: Vec<Check> = cells.into_iter().flat_map(|(p, most)| powers(effort, p, most)).collect();
    checks.push(endless(effort));
    checks.extend([0.1, 0.2].map(|share| budget(effort, share)));
    checks
}

fn powers(effort: &Effort, p: f64, most: u32) -> [Check; 2] {
    let calls = play(effort, p, &retries(Backoff::None, Jitter::None, None, most));
    let tries = tries(&calls, effort.jobs);
    let succeeded = calls.iter().filter(|call| call.work.is_some()).count();
    let power = p.powi(most as i32 + 1);
    let name = |what: &str| format!("p = {p}, {most} retries: {what}");
    [
        Check::mean(name("tries per job"), (1.0 - power) / (1.0 - p), &tries),
        Check::share(name("share that succeeds"), 1.0 - power, succeeded as f64 / effort.jobs as f64, effort.jobs),
    ]
}

fn endless(effort: &Effort) -> Check {
    let calls = play(effort, 0.5, &retries(Backoff::None, Jitter::None, None, u32::MAX));
    Check::mean("p = 0.5, retries for ever: tries per job", 2.0, &tries(&calls, effort.jobs))
}

/// A shared bucket, filled by successes: retries are at most what was in it and what came in.
fn budget(effort: &Effort, refill: f64) -> Check {
    let max = 50.0;
    let rule = BudgetRule::Tokens {
        max,
        cost: 1.0,
        timeout_cost: 1.0,
        throttled_cost: 1.0,
        refill,
        refund: false,
        threshold: 0.0,
        on_failure: false,
    };
    let budget = Some(Budget { rule, scope: Scope::Shared });
    let policy = Policy { budget, ..retries(Backoff::Constant { delay: SECOND }, Jitter::None, None, 3) };
    let calls = play(effort, 0.7, &policy);
    let succeeded = calls.iter().filter(|call| call.work.is_some()).count() as f64;
    let jobs = effort.jobs as f64;
    let most = 1.0 + (max + refill * succeeded) / jobs;
    let name = format!("p = 0.7, a budget of {max} and {refill} for each success: tries per job, at most");
    Check::new(name, most, calls.len() as f64 / jobs, Within::Bound)
}

/// Jobs that come one by one to a service that fails each call with probability `p`, and takes no time otherwise.
fn play(effort: &Effort, p: f64, policy: &Policy) -> Vec<Service> {
    let always = Window::starting(std::time::Duration::ZERO, 1_000_000_000 * SECOND);
    let mode = Mode::Unavailable { retry_after: None, dated: false };
    let outage = Outage { probability: p, ..Outage::plain(always, mode) };
    let latency = Dist::Constant { value: std::time::Duration::ZERO };
    let downstream = Settings { outages: vec![outage], ..servers(1, 0, latency) };
    calls(&scenario(jobs(effort.jobs, Arrival::Constant { rate: 100.0 }), downstream), policy, effort.seed)
}
