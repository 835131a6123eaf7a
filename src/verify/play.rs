//! Scenarios for models, and what is looked at.
//!
//! The machine is ideal, and there are more slots than jobs that want one: nothing but downstream and policy takes any time. A second of
//! the run is the unit of the model.

use std::time::Duration;

use crate::dist::Dist;
use crate::downstream::Settings;
use crate::job::JobId;
use crate::metrics::{Service, Services};
use crate::policy::{Backoff, Expression, ExpressionSettings, Jitter, Policy};
use crate::profile::Profile;
use crate::queue::ClaimMode;
use crate::rng::Seed;
use crate::scenario::{Database, NamedPolicy, Scenario};
use crate::sim::{self, Plan};
use crate::worker::{self, Wait};
use crate::workload::{Arrival, Group};

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// Ten years: long enough for everything that ends.
const LONG: Duration = Duration::from_secs(315_360_000);

/// So many jobs of one type.
pub(super) fn jobs(count: u64, arrival: Arrival) -> Group {
    Group { kind: "job".into(), count, arrival, at: Duration::ZERO, priority: 0, permanent: 0.0, max_retries: u32::MAX }
}

/// A scenario of one worker with slots for everybody.
pub(super) fn scenario(jobs: Group, downstream: Settings) -> Scenario {
    let workers = worker::Settings {
        count: 1,
        slots: u32::MAX,
        connections: 1,
        claim: ClaimMode::Lease,
        batch: 1_000_000,
        lease: LONG,
        wait: Wait::Listen { at_most: LONG },
    };
    Scenario {
        name: "model".into(),
        about: String::new(),
        seed: Seed(0),
        horizon: LONG,
        repetitions: 1,
        stampede_window: SECOND,
        jobs: vec![jobs],
        workers,
        database: Database::default(),
        downstream: Settings { client_timeout: LONG / 4, ..downstream },
        policies: Vec::<NamedPolicy>::new(),
        chaos: vec![],
        assertions: vec![],
    }
}

/// Servers with a mean service time of a second.
pub(super) fn servers(servers: u32, queue: u32, latency: Dist) -> Settings {
    Settings { servers, queue, latency, ..Settings::default() }
}

/// Exponential service times.
pub(super) const EXPONENTIAL: Dist = Dist::Exponential { mean: SECOND };

/// Every failure is retried, so often.
pub(super) fn retries(backoff: Backoff, jitter: Jitter, cap: Option<Duration>, most: u32) -> Policy {
    Policy { backoff, jitter, cap, max_retries: Some(most), ..Policy::default() }
}

/// Exponentially distributed delays of this mean in seconds, for ever.
pub(super) fn memoryless(mean: f64) -> Policy {
    let delay = Expression::parse(&format!("{mean} * abs(ln(1 - random()))"), ExpressionSettings::default())
        .expect("the formula is well-formed");
    retries(Backoff::Expression { delay: Box::new(delay) }, Jitter::None, None, u32::MAX)
}

/// Plays it on an ideal machine; every call that reached the downstream, in that order.
pub(super) fn calls(scenario: &Scenario, policy: &Policy, seed: Seed) -> Vec<Service> {
    let mut services = Services::default();
    sim::watch(Plan { scenario, policy, seed, profile: &Profile::ideal(), tape: false }, &mut services)
        .expect("time moves on: downstream or policy take some");
    services.0
}

/// How many calls each job made, by its number.
pub(super) fn tries(calls: &[Service], jobs: u64) -> Vec<f64> {
    let mut tries = vec![0.0; jobs as usize];
    for call in calls {
        tries[place(call.job)] += 1.0;
    }
    tries
}

/// A job's place in a list of all.
pub(super) fn place(job: JobId) -> usize {
    job.0 as usize - 1
}

/// The middle of a series: what comes before has not settled, and at the end nothing new arrives.
pub(super) fn settled<T>(series: &[T]) -> &[T] {
    &series[series.len() / 10..series.len() - series.len() / 50]
}
