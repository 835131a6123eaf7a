//! Clients that race for one row under an optimistic lock: the model behind the best-known picture of jitter.
//!
//! ```text
//!  client:  read ─hop─► row, its version ─hop─► write(version) ─hop─► still the same? ── yes: version + 1, done
//!             ▲                                                        └─ no: wait as the policy says, read again
//! ```
//! Each message takes a hop, normally distributed; the row takes no time and has no queue. A write is a *call*; a read is none. There is
//! no capacity and no outage in it, so it says nothing about overload; what it shows is how policies trade calls for time.
//!
//! A retry is decided by [`Policy::decide`], as a worker's is. Source: see `published.rs`.

use std::time::Duration;

use super::check::{Check, Effort, Within, mean_and_error, variance};
use super::published::{CELLS, Cell, Kind, RUNS};
use crate::call::Outcome;
use crate::dist::Dist;
use crate::job::{JobId, Memory};
use crate::policy::{Backoff, Decision, Jitter, Policy};
use crate::rng::{Seed, Stream};
use crate::sim::Calendar;
use crate::time::Instant;

const MS: Duration = Duration::from_millis(1);
/// A message's way. The original takes the absolute value where this cuts at zero: five standard deviations away.
const HOP: Dist = Dist::Normal { mean: Duration::from_millis(10), sd: Duration::from_millis(2) };
/// From so many runs on their spread is compared as well, to within so much.
const MANY: usize = 1000;
const SPREAD: f64 = 0.15;

/// How a race went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contention {
    /// Writes that were tried.
    pub calls: u64,
    /// When the last client knew that it had succeeded.
    pub took: Duration,
}

/// What reaches the row next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Read(u32),
    Write(u32, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    retries: u32,
    last_delay: Option<Duration>,
    messages: u32,
}

/// Lets so many clients race, each until it has written once. The policy must retry for ever.
pub fn contend(clients: u32, policy: &Policy, seed: Seed) -> Contention {
    let mut calendar: Calendar<Next> = Calendar::default();
    let mut racing = vec![Client::default(); clients as usize];
    let hop = |racing: &mut [Client], client: u32| {
        let messages = &mut racing[client as usize].messages;
        *messages += 1;
        HOP.sample(&mut seed.draw(Stream::Wire, JobId(client.into()), *messages))
    };
    for client in 0..clients {
        calendar.plan(Instant::START + hop(&mut racing, client), Next::Read(client));
    }
    let (mut version, mut calls, mut last) = (0, 0, Instant::START);
    while let Some((now, next)) = calendar.take() {
        match next {
            Next::Read(client) => {
                let there_and_back = hop(&mut racing, client) + hop(&mut racing, client);
                calendar.plan(now + there_and_back, Next::Write(client, version));
            }
            Next::Write(client, read) => {
                calls += 1;
                let known = now + hop(&mut racing, client);
                if read == version {
                    version += 1;
                    last = last.max(known);
                } else if let Some(after) = back_off(&mut racing[client as usize], client, policy, seed) {
                    let again = known + after + hop(&mut racing, client);
                    calendar.plan(again, Next::Read(client));
                }
            }
        }
    }
    Contention { calls, took: last.since_start() }
}

fn back_off(state: &mut Client, client: u32, policy: &Policy, seed: Seed) -> Option<Duration> {
    let memory = Memory { retries: state.retries, max_retries: u32::MAX, last_delay: state.last_delay, age: Duration::ZERO };
    let mut draw = seed.draw(Stream::Jitter, JobId(client.into()), memory.attempt());
    let Decision::Retry { after } = policy.decide(&memory, &Outcome::status(409), &mut draw) else { return None };
    (state.retries, state.last_delay) = (state.retries + 1, Some(after));
    Some(after)
}

/// The article's policies: 5 ms doubled before each retry, up to 2 s.
fn policy(kind: Kind) -> Policy {
    let exponential = Backoff::Exponential { base: 10 * MS, factor: 2.0 };
    let (backoff, jitter) = match kind {
        Kind::None => (Backoff::None, Jitter::None),
        Kind::Exponential => (exponential, Jitter::None),
        Kind::Equal => (exponential, Jitter::Equal),
        Kind::Full => (exponential, Jitter::Full),
        Kind::Decorrelated => {
            (Backoff::Exponential { base: 5 * MS, factor: 2.0 }, Jitter::Decorrelated { bound: false, rising: false })
        }
    };
    super::play::retries(backoff, jitter, Some(2000 * MS), u32::MAX)
}

pub(super) fn of_10(effort: &Effort) -> Vec<Check> {
    of(effort, 10)
}

pub(super) fn of_20(effort: &Effort) -> Vec<Check> {
    of(effort, 20)
}

pub(super) fn of_50(effort: &Effort) -> Vec<Check> {
    of(effort, 50)
}

pub(super) fn of_100(effort: &Effort) -> Vec<Check> {
    of(effort, 100)
}

/// One client alone, and two, can be counted by hand.
pub(super) fn exact(effort: &Effort) -> Vec<Check> {
    let mut checks = Vec::new();
    for (clients, calls) in [(1, 1), (2, 3)] {
        for kind in [Kind::None, Kind::Exponential, Kind::Equal, Kind::Full, Kind::Decorrelated] {
            let races = (1..=effort.races).map(|run| contend(clients, &policy(kind), effort.seed.repetition(run)).calls);
            let most = races.max_by_key(|races| races.abs_diff(calls)).unwrap_or_default();
            checks.push(Check::exact(format!("{clients} clients, {}: calls, always", name(kind)), calls as f64, most as f64));
        }
    }
    let alone = (1..=effort.races).map(|run| contend(1, &policy(Kind::None), effort.seed.repetition(run)).took);
    let alone: Vec<f64> = alone.map(|took| took.as_secs_f64() * 1e3).collect();
    checks.push(Check::mean("1 client: four hops, ms", 40.0, &alone));
    checks
}

fn of(effort: &Effort, clients: u32) -> Vec<Check> {
    CELLS.iter().filter(|cell| cell.clients == clients).flat_map(|cell| compare(effort, cell)).collect()
}

fn compare(effort: &Effort, cell: &Cell) -> Vec<Check> {
    let policy = policy(cell.policy);
    let races: Vec<Contention> =
        (1..=effort.races).map(|run| contend(cell.clients, &policy, effort.seed.repetition(run))).collect();
    let calls: Vec<f64> = races.iter().map(|race| race.calls as f64).collect();
    let took: Vec<f64> = races.iter().map(|race| race.took.as_secs_f64() * 1e3).collect();
    let mut checks = Vec::new();
    for (what, published, values) in [("calls", cell.calls, calls), ("time, ms", cell.ms, took)] {
        let named = format!("{} clients, {}: {what}", cell.clients, name(cell.policy));
        let (mean, sd) = published;
        let (measured, _) = mean_and_error(&values);
        // Both are means of so many runs.
        let error = sd * (1.0 / values.len() as f64 + 1.0 / RUNS).sqrt();
        checks.push(Check::new(&*named, mean, measured, Within::Errors(error)));
        if values.len() >= MANY {
            checks.push(Check::new(format!("{named}, its sd"), sd, variance(&values).sqrt(), Within::Of(SPREAD * sd)));
        }
    }
    checks
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::None => "no backoff",
        Kind::Exponential => "exponential",
        Kind::Equal => "equal jitter",
        Kind::Full => "full jitter",
        Kind::Decorrelated => "decorrelated",
    }
}
