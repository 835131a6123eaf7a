//! Time per event as the system grows, beside the bare loop's own.
//!
//! So many jobs arrive at once, fail together, and all back off for up to a minute: every one of them waits in the store, and its reminder in
//! the calendar. Nobody watches: at ten million jobs the records would be what is measured.

use std::time::Duration;

use simq::profile::Profile;
use simq::sim::{self, Plan};

use super::{bare, clock, scenarios};

pub fn measure() {
    println!("time per event by jobs in the system, unwatched, beside the bare loop with as many pending:");
    let mut first: Option<[f64; 2]> = None;
    for jobs in [10_000, 100_000, 1_000_000, 10_000_000] {
        let scenario = scenarios::wave(jobs);
        let profile = Profile::ideal();
        let plan = Plan {
            scenario: &scenario,
            policy: &scenario.policies[0].policy,
            seed: scenario.seed,
            profile: &profile,
            tape: false,
        };
        let (events, whole) = clock::time(|| sim::watch(plan, &mut ()).expect("time moves on"));
        let pops = events.min(4_000_000);
        let per = |spent: Duration, events: u64| spent.as_secs_f64() * 1e9 / events as f64;
        let times = [per(whole, events), per(bare::heap(jobs as usize, pops), pops)];
        let [ours, bare] = times;
        let [ours_first, bare_first] = *first.get_or_insert(times);
        println!(
            "{jobs:>9} jobs, {events:>9} events: {ours:>4.0} ns, {:.2}x of the first · bare loop {bare:>4.0} ns, {:.2}x of its first",
            ours / ours_first,
            bare / bare_first,
        );
    }
}
