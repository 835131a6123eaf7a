//! Replications on one thread and on two.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use simq::sim::{self, Plan, replicate};

use super::{clock, median, scenarios};

const RUNS: usize = 16;
const ROUNDS: usize = 3;
const JOBS: u64 = 15_500;

pub fn measure() {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let (mut walls, mut costs) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let [(one, alone), (two, together)] = [1, 2].map(seeds);
        walls.push(one / two);
        costs.push(together / alone);
    }
    println!(
        "{RUNS} seeds of {JOBS} jobs on 2 threads beside 1, {cores} processors: {:.2} times as soon, {:.2} times the processor time for each",
        median(walls),
        median(costs),
    );
}

/// Seconds until all are done, and processor seconds for each.
fn seeds(threads: usize) -> (f64, f64) {
    let (scenario, profile) = (scenarios::outage(JOBS), scenarios::machine(JOBS));
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let spent = replicate(RUNS, NonZero::new(threads).expect("it is not zero"), &stop, |number| {
        let seed = scenario.seed.repetition(number as u32 + 1);
        let plan = Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed, profile: &profile, tape: false };
        clock::time(|| sim::run(plan, &stop).expect("time moves on").events).1.as_secs_f64()
    });
    (began.elapsed().as_secs_f64(), spent.into_iter().flatten().sum::<f64>() / RUNS as f64)
}
