//! Outages: how hard a service that is down is hit, how soon it hears that it is up, and how long the backlog takes.

use std::time::Duration;

use super::check::{Check, Effort, Within};
use super::play::{EXPONENTIAL, SECOND, calls, jobs, place, retries, scenario, servers};
use crate::dist::Dist;
use crate::downstream::{Mode, Outage, Settings};
use crate::metrics::Service;
use crate::policy::{Backoff, Jitter, Policy};
use crate::profile::Profile;
use crate::sim::{self, Plan};
use crate::time::{Instant, Window};
use crate::workload::Arrival;

/// The cap.
const CAP: Duration = Duration::from_secs(10);
const UNAVAILABLE: Mode = Mode::Unavailable { retry_after: None, dated: false };

pub(super) fn checks(effort: &Effort) -> Vec<Check> {
    let mut checks = at_the_cap(effort);
    checks.extend([(80.0, 40.0), (50.0, 10.0)].map(|(rate, drain)| recovery(effort, rate, drain)));
    checks.extend([(1000, 7), (64, 64), (65, 64)].map(|(jobs, slots)| makespan(jobs, slots)));
    checks.extend(conservation(effort));
    checks
}

fn down(lasts: Duration, latency: Dist) -> Settings {
    let outage = Outage::plain(Window::starting(Duration::ZERO, lasts), UNAVAILABLE);
    Settings { outages: vec![outage], ..servers(1, u32::MAX, latency) }
}

/// Jobs that have been at the cap for long: calls of each in a hundred caps, and from the outage's end to its next call, both in caps.
fn at_the_cap(effort: &Effort) -> Vec<Check> {
    let count = (effort.jobs / 20).max(200);
    let (from, until) = (Instant::START + 20 * CAP, Instant::START + 120 * CAP);
    let scenario = scenario(jobs(count, Arrival::AtOnce), down(120 * CAP, Dist::Constant { value: Duration::ZERO }));
    let mut checks = Vec::new();
    for (name, jitter, rate, idle) in [
        ("no", Jitter::None, 1.0, None),
        ("equal", Jitter::Equal, 4.0 / 3.0, Some(7.0 / 18.0)),
        ("full", Jitter::Full, 2.0, Some(1.0 / 3.0)),
    ] {
        let calls = calls(&scenario, &retries(Backoff::Constant { delay: CAP }, jitter, None, u32::MAX), effort.seed);
        let (mut hits, mut next) = (vec![0.0; count as usize], vec![0.0; count as usize]);
        for call in &calls {
            if (from..until).contains(&call.arrived) {
                hits[place(call.job)] += 0.01;
            } else if call.work.is_some() {
                next[place(call.job)] = call.arrived.since(until).as_secs_f64() / CAP.as_secs_f64();
            }
        }
        let what = format!("{name} jitter, a long outage at the cap: calls per job and cap");
        checks.push(match idle {
            None => Check::new(what, rate, hits.iter().sum::<f64>() / count as f64, Within::Of(1e-9)),
            Some(_) => Check::mean(what, rate, &hits),
        });
        checks.extend(
            idle.map(|idle| {
                Check::mean(format!("{name} jitter, from the outage's end to a job's next call, in caps"), idle, &next)
            }),
        );
    }
    checks
}

/// Ten seconds of outage at `rate` jobs a second, of 100 that the service could do: how long the backlog takes to drain. Retries
/// come every 20 ms, and theory pours water where jobs are whole: it is no more precise than that.
fn recovery(effort: &Effort, rate: f64, expected: f64) -> Check {
    let (work, outage) = (Duration::from_millis(10), 10 * SECOND);
    let scenario =
        scenario(jobs((rate * 100.0) as u64, Arrival::Constant { rate }), down(outage, Dist::Constant { value: work }));
    let policy = retries(Backoff::Constant { delay: 2 * work }, Jitter::None, None, u32::MAX);
    let calls = calls(&scenario, &policy, effort.seed);
    let up = Instant::START + outage;
    let drained = calls
        .iter()
        .filter(|call| call.arrived > up + 2 * work)
        .find(|call| call.work.is_some_and(|work| work.from == call.arrived));
    let took = drained.map_or(f64::NAN, |call| call.arrived.since(up).as_secs_f64());
    let name = format!("10 s of outage at {rate} of 100 jobs a second: backlog gone after, s");
    Check::new(name, expected, took, Within::Of(0.02 * expected))
}

/// Equal jobs of a second on so many slots.
fn makespan(count: u64, slots: u32) -> Check {
    let latency = Dist::Constant { value: SECOND };
    let mut scenario = scenario(jobs(count, Arrival::AtOnce), servers(slots, 0, latency));
    (scenario.workers.slots, scenario.workers.batch) = (slots, slots);
    let calls = calls(&scenario, &Policy::default(), crate::rng::Seed(1));
    let last = calls.iter().filter_map(|call| call.work).map(|work| work.until).max().unwrap_or_default();
    let name = format!("{count} jobs of 1 s on {slots} slots: all done after, s");
    Check::exact(name, count.div_ceil(slots.into()) as f64, last.as_secs_f64())
}

/// Nothing gets lost, and Little's law, both to the last digit.
fn conservation(effort: &Effort) -> Vec<Check> {
    let mode = Mode::Brownout { error_rate: 0.4, slowdown: 2.0, servers: Some(1) };
    let outage = Outage::plain(Window::starting(50 * SECOND, 200 * SECOND), mode);
    let downstream = Settings { outages: vec![outage], ..servers(2, 20, EXPONENTIAL) };
    let scenario = scenario(jobs(effort.jobs.min(20_000), Arrival::Poisson { rate: 1.5 }), downstream);
    let policy = retries(Backoff::Constant { delay: SECOND }, Jitter::Full, None, 4);
    let plan = Plan { scenario: &scenario, policy: &policy, seed: effort.seed, profile: &Profile::ideal(), tape: false };
    let run = sim::run(plan, &std::sync::atomic::AtomicBool::new(false)).expect("time moves on: calls take some");
    let counts = run.summary.counts;
    let retried = run.record.jobs.iter().map(|job| u64::from(job.retries)).sum::<u64>();
    let ends = (counts.completed + counts.exhausted) as f64;
    let (held, stayed) = little(&run.record.services);
    vec![
        Check::exact("jobs: arrived = completed + given up", counts.jobs as f64, ends),
        Check::exact("calls: sent = jobs + retries on their rows", (counts.jobs + retried) as f64, run.summary.requests as f64),
        Check::exact(
            "calls: sent = arrived at the service",
            run.summary.requests as f64,
            run.record.arrivals_at_downstream as f64,
        ),
        Check::exact("what the audit found", 0.0, run.breaches.len() as f64),
        Check::exact("Little's law: calls in the service, over time = their stays, summed, s", stayed, held),
    ]
}

/// The integral of the number of calls in the service, by its changes, and the sum of what each stayed, in seconds.
fn little(services: &[Service]) -> (f64, f64) {
    let stays: Vec<Window> =
        services.iter().filter_map(|call| call.work.map(|work| Window { from: call.arrived, until: work.until })).collect();
    let stayed: u128 = stays.iter().map(|stay| stay.length().as_nanos()).sum();
    let mut changes: Vec<(Instant, i64)> = stays.iter().flat_map(|stay| [(stay.from, 1), (stay.until, -1)]).collect();
    changes.sort_unstable();
    let (mut held, mut inside, mut last) = (0_u128, 0_i64, Instant::START);
    for (at, change) in changes {
        held += at.since(last).as_nanos() * inside.unsigned_abs() as u128;
        (inside, last) = (inside + change, at);
    }
    (held as f64 / 1e9, stayed as f64 / 1e9)
}
