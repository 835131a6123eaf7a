//! The same random chaos in virtual time: thousands of mixtures in seconds, under the same audit.

use std::sync::atomic::AtomicBool;

use simq::metrics::repeats;
use simq::profile::Profile;
use simq::real::End;
use simq::sim::{self, Plan};

use super::random::drawn;

const SEEDS: u64 = 1000;

#[test]
fn random_chaos_in_virtual_time_passes_the_audit() {
    let (mut lost, mut repeated, mut failures, mut blows) = (0, 0, 0, 0);
    for (seed, profile) in (1..=SEEDS).zip([Profile::built_in(), Profile::ideal()].iter().cycle()) {
        let scenario = drawn(seed);
        let policy = &scenario.policies[0].policy;
        let plan = Plan { scenario: &scenario, policy, seed: scenario.seed, profile, tape: false };
        let outcome = sim::run(plan, &AtomicBool::new(false)).unwrap();
        let record = &outcome.record;
        assert!(outcome.breaches.is_empty(), "seed {seed}: {:?}\n{:?}", outcome.breaches, record.blows);
        assert_eq!((outcome.end, outcome.summary.counts.unfinished), (End::Finished, 0), "seed {seed}: {:?}", record.blows);
        lost += outcome.summary.lost_leases;
        repeated += repeats(record).len() as u64;
        failures += outcome.summary.store_failures;
        blows += record.blows.iter().map(|blow| blow.hit).sum::<u64>();
    }
    for bitten in [lost, repeated, failures, blows] {
        assert!(bitten >= SEEDS / 4, "chaos bit: {lost} leases lost, {repeated} repeats, {failures} failures, {blows} hits");
    }
}
