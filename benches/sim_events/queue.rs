//! One queueing model, M/M/4 at 80 %: two events for each job, its arrival and its departure. `benches/peers-sim` has the same for others.
//!
//! Three times: written by hand on simq's calendar with the very numbers that the others draw, which compares calendars; with simq's
//! downstream, whose luck is keyed by job; and as a scenario, with all that a run has.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rand_distr::{Distribution, Exp1};
use simq::call::{Call, Reply};
use simq::downstream::Downstream;
use simq::job::JobId;
use simq::profile::Profile;
use simq::rng::{Seed, Stream};
use simq::sim::{self, Calendar, Plan};
use simq::time::{Instant, seconds};

use super::bare::Chance;
use super::{clock, scenarios};

const JOBS: u64 = 500_000;
const RATE: f64 = 3.2;

pub fn measure() {
    let (by_hand, hand) = clock::time(by_hand);
    let (wait, parts) = clock::time(parts);
    let rate = |events: u64, spent: Duration| events as f64 / spent.as_secs_f64();
    println!("M/M/4 at 80 %, {JOBS} jobs, in theory a mean wait of 0.7455:");
    println!(
        "simq, calendar and the model by hand: {:.0} events per processor second, mean wait {by_hand:.4}",
        rate(2 * JOBS, hand)
    );
    println!("simq, calendar and downstream: {:.0} events per processor second, mean wait {wait:.4}", rate(2 * JOBS, parts));
    let scenario = scenarios::queue(JOBS, RATE);
    let profile = Profile::ideal();
    let plan =
        Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed: scenario.seed, profile: &profile, tape: false };
    let (outcome, whole) = clock::time(|| sim::run(plan, &AtomicBool::new(false)).expect("time moves on"));
    let waits = outcome.record.services.iter().filter_map(|call| Some(call.work?.from.since(call.arrived).as_secs_f64()));
    println!(
        "simq, store, workers, records and figures as well: {:.0} events of the model per processor second ({:.0} of its own), mean wait {:.4}",
        rate(2 * JOBS, whole),
        rate(outcome.events, whole),
        waits.sum::<f64>() / JOBS as f64,
    );
}

#[derive(Clone, Copy)]
enum Next {
    Arrival,
    Departure,
}

/// The model as `benches/peers-sim` has it for others, with the same numbers; the mean wait.
fn by_hand() -> f64 {
    let mut chance = Chance(7);
    let mut calendar = Calendar::default();
    calendar.plan(Instant::START, Next::Arrival);
    let (mut left, mut busy, mut waited) = (JOBS, 0, 0.0);
    let mut waiting: VecDeque<Instant> = VecDeque::new();
    while let Some((now, next)) = calendar.take() {
        match next {
            Next::Arrival => {
                left -= 1;
                if busy < 4 {
                    busy += 1;
                    calendar.plan(now + seconds(exponential(&mut chance)), Next::Departure);
                } else {
                    waiting.push_back(now);
                }
                if left > 0 {
                    calendar.plan(now + seconds(exponential(&mut chance) / RATE), Next::Arrival);
                }
            }
            Next::Departure => match waiting.pop_front() {
                Some(since) => {
                    waited += now.since(since).as_secs_f64();
                    calendar.plan(now + seconds(exponential(&mut chance)), Next::Departure);
                }
                None => busy -= 1,
            },
        }
    }
    assert_eq!((left, busy), (0, 0), "whoever came has gone");
    waited / JOBS as f64
}

/// Of mean 1, never zero, as nexosim's model draws it.
fn exponential(chance: &mut Chance) -> f64 {
    let unit = (chance.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    (-(1.0 - unit).ln()).max(1e-9)
}

/// The model from the parts that it needs; the mean wait.
fn parts() -> f64 {
    let seed = Seed(7);
    let mut downstream = Downstream::new(scenarios::four_servers(), seed);
    let mut gaps = seed.draw(Stream::Arrival, JobId(0), 0);
    let mut calendar = Calendar::default();
    calendar.plan(Instant::START, Next::Arrival);
    let (mut job, mut waited, mut departed) = (0, 0.0, 0);
    while let Some((now, next)) = calendar.take() {
        match next {
            Next::Arrival => {
                job += 1;
                let admission = downstream.take(now, &Call::new(JobId(job), 1, "{}"));
                waited += admission.work.map_or(0.0, |work| work.from.since(now).as_secs_f64());
                if let Reply::Answer { at, .. } = admission.reply {
                    calendar.plan(at, Next::Departure);
                }
                if job < JOBS {
                    let gap: f64 = Exp1.sample(&mut gaps);
                    calendar.plan(now + seconds(gap / RATE), Next::Arrival);
                }
            }
            Next::Departure => departed += 1,
        }
    }
    assert_eq!(departed, JOBS, "whoever came has gone");
    waited / JOBS as f64
}
