//! What does a retry decision cost? `Policy::decide` with its keyed draw, beside the draw alone.
//!
//! The draw is the limit: a decision that must not depend on any other decision has to key a generator of its own.

mod beside;

use std::hint::black_box;
use std::time::Duration;

use beside::{Pair, time};
use criterion::Criterion;
use simq::call::Outcome;
use simq::job::{JobId, Memory};
use simq::policy::{Backoff, Jitter, Policy, RetryAfter};
use simq::rng::{Seed, Stream};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("decide");
    let seed = black_box(Seed(1));
    let pairs: Vec<Pair> = policies()
        .into_iter()
        .filter_map(|(name, policy)| {
            Pair::bench(&mut group, name, "one keyed draw", |times| {
                let ours = time(times, |n| {
                    let memory = memory(n);
                    let mut draw = seed.draw(Stream::Jitter, JobId(n), memory.attempt());
                    policy.decide(&memory, &black_box(Outcome::status(503)), &mut draw)
                });
                [ours, time(times, |n| seed.draw(Stream::Jitter, JobId(n), memory(n).attempt()).unit())]
            })
        })
        .collect();
    group.finish();
    criterion.final_summary();
    pairs.iter().for_each(|pair| pair.tell(None));
}

/// A job that has failed before, one to eight times.
fn memory(n: u64) -> Memory {
    let retries = (n % 8) as u32;
    Memory { retries, max_retries: 100, last_delay: Some(Duration::from_millis(200)), age: Duration::from_secs(1) }
}

fn policies() -> [(&'static str, Policy); 4] {
    let exponential = Backoff::Exponential { base: Duration::from_millis(100), factor: 2.0 };
    let policy = |backoff: &Backoff, jitter| Policy {
        backoff: backoff.clone(),
        cap: Some(Duration::from_secs(10)),
        jitter,
        max_retries: None,
        classify: true,
        retry_after: RetryAfter::Ignore,
        ..Policy::default()
    };
    [
        ("none", policy(&Backoff::None, Jitter::None)),
        ("exponential", policy(&exponential, Jitter::None)),
        ("decorrelated", policy(&exponential, Jitter::Decorrelated { bound: false, rising: false })),
        ("full jitter", policy(&exponential, Jitter::Full)),
    ]
}
