//! A million jobs, an outage, full jitter: how long, and how much memory.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use simq::sim::{self, Plan};

use super::{clock, scenarios};

const JOBS: u64 = 1_000_000;

/// Alone in its process, so that the peak of its memory is its own.
pub fn measure(among_others: bool) {
    if among_others {
        let this = std::env::current_exe().expect("this program is a file");
        let status = Command::new(this).arg("million").status().expect("it can be started once more");
        assert!(status.success(), "it ends well");
        return;
    }
    let (scenario, profile) = (scenarios::outage(JOBS), scenarios::machine(JOBS));
    let plan =
        Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed: scenario.seed, profile: &profile, tape: false };
    let began = Instant::now();
    let (outcome, spent) = clock::time(|| sim::run(plan, &AtomicBool::new(false)).expect("time moves on"));
    let took = began.elapsed();
    println!(
        "{JOBS} jobs, an outage, full jitter: {:.2} s ({:.2} s of processor), {:.0} MiB at most; {} events, {} attempts, {} completed",
        took.as_secs_f64(),
        spent.as_secs_f64(),
        clock::peak_mib().unwrap_or(f64::NAN),
        outcome.events,
        outcome.record.attempts.len(),
        outcome.summary.counts.completed,
    );
}
