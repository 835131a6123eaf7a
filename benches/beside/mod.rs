//! What is measured, and what it is measured beside: medians of one run, and their ratios.
//!
//! A figure alone says more of the machine than of simq. So each bench also times a raw limit, the least that the task
//! could cost, and ends with a line such as `ratio: ours 1.8x of one keyed draw`.

#![allow(clippy::disallowed_types, reason = "a bench reads the machine's clock")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use criterion::BenchmarkGroup;
use criterion::measurement::WallTime;

/// The medians so far, in seconds per iteration.
#[derive(Default)]
pub struct Medians(BTreeMap<String, f64>);

impl Medians {
    /// Benches `run`, which does its work so many times and says how long that took.
    pub fn bench(&mut self, group: &mut BenchmarkGroup<'_, WallTime>, name: &str, mut run: impl FnMut(u64) -> Duration) {
        let mut samples: Vec<(u64, f64)> = Vec::new();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let took = run(times);
                samples.push((times, took.as_secs_f64() / times as f64));
                took
            });
        });
        if let Some(median) = median(samples) {
            self.0.insert(name.to_owned(), median);
        }
    }

    /// Seconds per iteration of the bench of this name; `None` if a filter left it out.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Prints how many times as long `ours` took as `limit`, unless a filter left one of them out.
    pub fn ratio(&self, ours: &str, limit: &str) {
        if let (Some(our_time), Some(limit_time)) = (self.get(ours), self.get(limit)) {
            let (ours_shown, limit_shown) = (shown(our_time), shown(limit_time));
            println!("{ours}: {ours_shown} beside {limit_shown} · ratio: ours {:.2}x of {limit}", our_time / limit_time);
        }
    }
}

/// How long it takes to do `work` so many times; it is told which time it is, from 0.
pub fn time<T>(times: u64, mut work: impl FnMut(u64) -> T) -> Duration {
    let began = Instant::now();
    for n in 0..times {
        std::hint::black_box(work(n));
    }
    began.elapsed()
}

fn shown(seconds: f64) -> String {
    if seconds < 1e-6 { format!("{:.1}ns", seconds * 1e9) } else { format!("{:.1?}", Duration::from_secs_f64(seconds)) }
}

/// The median of the long samples: short ones, from the warm-up, time the clock as well.
fn median(samples: Vec<(u64, f64)>) -> Option<f64> {
    let longest = samples.iter().map(|(times, _)| *times).max()?;
    let mut kept: Vec<f64> = samples.into_iter().filter(|(times, _)| times * 2 >= longest).map(|(_, seconds)| seconds).collect();
    kept.sort_by(f64::total_cmp);
    Some(kept[kept.len() / 2])
}
