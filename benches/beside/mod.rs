//! What is measured, and what it is measured beside.
//!
//! A figure alone says more of the machine than of simq. So each bench also times a raw limit, the least that the task
//! could cost, and ends with a line such as `ratio: ours 1.8x of one keyed draw`. The two are timed in turn, sample by
//! sample, and the ratio is the median of the samples' own: what else the machine does meanwhile befalls both.

#![allow(clippy::disallowed_types, reason = "a bench reads the machine's clock")]

use std::time::{Duration, Instant};

use criterion::BenchmarkGroup;
use criterion::measurement::WallTime;

/// Something of ours beside its limit.
pub struct Pair {
    names: [String; 2],
    seconds: [f64; 2],
    ratio: f64,
}

impl Pair {
    /// Benches `run`, which does its work so many times and says how long that took, and how long the limit took for as many.
    /// `None` if a filter left it out. Criterion's own figures are those of ours.
    pub fn bench(
        group: &mut BenchmarkGroup<'_, WallTime>,
        ours: &str,
        limit: &str,
        mut run: impl FnMut(u64) -> [Duration; 2],
    ) -> Option<Pair> {
        let mut samples: Vec<(u64, [Duration; 2])> = Vec::new();
        group.bench_function(ours, |bencher| {
            bencher.iter_custom(|times| {
                let took = run(times);
                samples.push((times, took));
                took[0]
            });
        });
        // Short samples are from the warm-up, and time the clock as well.
        let longest = samples.iter().map(|(times, _)| *times).max()?;
        samples.retain(|(times, _)| times * 2 >= longest);
        let each = |which: usize| median(samples.iter().map(|(times, took)| took[which].as_secs_f64() / *times as f64));
        let ratio = median(samples.iter().map(|(_, [ours, limit])| ours.as_secs_f64() / limit.as_secs_f64()));
        Some(Pair { names: [ours.to_owned(), limit.to_owned()], seconds: [each(0), each(1)], ratio })
    }

    /// Prints both medians, each also as the rate of `units` if there are that many in an iteration, and the ratio.
    pub fn tell(&self, units: Option<(u64, &str)>) {
        let shown = |seconds: f64| match units {
            None => format!("{:.1} ns", seconds * 1e9),
            Some((count, unit)) => format!("{:.0} {unit}/s", count as f64 / seconds),
        };
        let [ours, limit] = &self.names;
        let [our_time, limit_time] = self.seconds.map(shown);
        println!("{ours}: {our_time} beside {limit_time} · ratio: ours {:.2}x of {limit}", self.ratio);
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

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
