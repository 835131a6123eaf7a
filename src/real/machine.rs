//! A look at the machine: how full its processors are, how late its timers, and what it is.
//!
//! The figures decide whether a run may be believed: see [`crate::metrics::Limit`]. On systems without `/proc` the processors' share is
//! not known, and is reported as such.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::clock::Clock;
use crate::metrics::Sample;

/// How often the timer is tried.
const PERIOD: Duration = Duration::from_millis(20);
/// Every so many tries, the processors are looked at.
const LOOK_EVERY: u32 = 5;

/// Samples the machine until it is dropped or aborted; `keep` takes each sample.
pub(super) async fn watch(clock: Clock, mut keep: impl FnMut(Sample)) {
    let mut last = Ticks::read();
    let mut due = clock.now();
    for tries in 1_u32.. {
        due = due + PERIOD;
        clock.sleep_until(due).await;
        let now = clock.now();
        let mut sample = Sample { at: now, timer_late: now.since(due), ..Sample::default() };
        if tries.is_multiple_of(LOOK_EVERY) {
            let ticks = Ticks::read();
            (sample.machine, sample.simq) = shares(last, ticks);
            last = ticks;
        }
        keep(sample);
        due = due.max(now.before(PERIOD));
    }
}

/// Processor time since the system started, in the system's ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    all: u64,
    busy: u64,
    own: u64,
}

impl Ticks {
    fn read() -> Option<Ticks> {
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let columns: Vec<u64> =
            machine.lines().next()?.split_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
        let idle = columns.get(3)? + columns.get(4)?;
        let all: u64 = columns.iter().sum();
        let own = fs::read_to_string("/proc/self/stat").ok()?;
        // The second field, the command's name, may hold spaces; it ends with the last parenthesis.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let own = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Ticks { all, busy: all - idle, own })
    }
}

fn shares(from: Option<Ticks>, until: Option<Ticks>) -> (Option<f64>, Option<f64>) {
    let (Some(from), Some(until)) = (from, until) else { return (None, None) };
    let all = until.all.saturating_sub(from.all);
    if all == 0 {
        return (None, None);
    }
    let share = |from: u64, until: u64| Some((until.saturating_sub(from) as f64 / all as f64).min(1.0));
    (share(from.busy, until.busy), share(from.own, until.own))
}

/// What the machine is: names and values for a report.
pub fn facts() -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut fact = |name: &str, value: String| facts.insert(format!("machine.{name}"), value);
    fact("os", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    fact("cores", std::thread::available_parallelism().map_or("unknown".into(), |n| n.to_string()));
    if let Some(model) = line("/proc/cpuinfo", "model name") {
        fact("processor", model);
    }
    if let Some(memory) = line("/proc/meminfo", "MemTotal") {
        fact("memory", memory);
    }
    facts
}

fn line(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
