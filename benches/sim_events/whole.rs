//! The whole simulator, with everything recorded and summed up, beside the bare loop.

use std::sync::atomic::AtomicBool;

use simq::profile::Profile;
use simq::sim::{self, Plan};

use super::{bare, clock, median, scenarios};

const ROUNDS: usize = 5;

pub fn measure() {
    println!("whole simulator beside a bare loop: {ROUNDS} rounds in turns, medians of events per second of processor time");
    for jobs in [1_550, 15_500, 155_000] {
        for (name, profile) in [("a machine that takes its time", scenarios::machine(jobs)), ("an ideal one", Profile::ideal())] {
            one(jobs, name, &profile);
        }
    }
}

fn one(jobs: u64, name: &str, profile: &Profile) {
    let scenario = scenarios::outage(jobs);
    let (mut ours, mut watched, mut loops, mut calendars) = (vec![], vec![], vec![], vec![]);
    let mut ratios = vec![];
    let (mut pending, mut events, mut attempts) = (0, 0, 0);
    for _ in 0..ROUNDS {
        let plan = Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed: scenario.seed, profile, tape: false };
        let (outcome, whole) = clock::time(|| sim::run(plan, &AtomicBool::new(false)).expect("time moves on"));
        (events, pending, attempts) = (outcome.events, outcome.pending, outcome.record.attempts.len());
        drop(outcome);
        let (_, watch) = clock::time(|| sim::watch(plan, &mut ()).expect("time moves on"));
        let bare = bare::heap(pending, events);
        let calendar = bare::calendar(pending, events);
        let rate = |spent: std::time::Duration| events as f64 / spent.as_secs_f64();
        ours.push(rate(whole));
        watched.push(rate(watch));
        loops.push(rate(bare));
        calendars.push(rate(calendar));
        ratios.push(rate(whole) / rate(bare));
    }
    let million = |values: Vec<f64>| median(values) / 1e6;
    println!(
        "{jobs:>8} jobs, {name:<29} {attempts:>7} attempts {events:>8} events {pending:>6} pending: \
         whole {:.2} M/s, unwatched {:.2} M/s, calendar alone {:.2} M/s, bare loop {:.2} M/s · ratio: {:.2} of the bare loop",
        million(ours),
        million(watched),
        million(calendars),
        million(loops),
        median(ratios),
    );
}
