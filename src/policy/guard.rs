//! The state that policies share: budgets, breakers, rates, and counters that a job's row does not have.
//!
//! A [`Policy`] is data and knows no state. A worker owns a [`Guard`], asks it before each call ([`Guard::admit`]) and after each
//! ([`Guard::decide`]). Who shares a piece of state is its [`Scope`], and it flips results: a breaker of each worker's own opens
//! sixteen times as late as one of sixteen workers together.
//!
//! ```text
//! scope     kept                                       shared by
//! job       in `Shared`, under the job's number        the attempts of one job, whichever worker makes them
//! worker    in the guard itself                        the slots of one worker
//! process   in `Shared`                                all workers of one process; `simq run` has one
//! shared    in `Shared`                                all workers of a run
//! ```
//! [`Shared`] is a handle, cloned into each guard. Nothing is called while it is locked and no two locks are held, so workers can't wait
//! for each other; on one thread the lock is never contended and a run is as deterministic as its order of events. A real run's order is the
//! machine's, so a tape of a run with state in `Shared` can't be replayed worker by worker; one with `worker` state can.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::breaker::Circuit;
use super::budget::{Answer, Balance, Price};
use super::classify::{Class, Kind};
use super::rate::Pace;
use super::{Decision, Policy, Standing, Why};
use crate::call::Outcome;
use crate::job::{JobId, Memory};
use crate::rng::{Seed, Stream};
use crate::time::Instant;

/// Who shares a piece of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The attempts of one job.
    Job,
    /// The slots of one worker.
    #[default]
    Worker,
    /// All workers of one process.
    Process,
    /// All workers.
    Shared,
}

/// The state of scopes wider than a worker: make one for a run, and give it to each worker.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Store>>);

/// One worker's share of a policy's state.
#[derive(Debug)]
pub struct Guard {
    seed: Seed,
    worker: u32,
    own: Cell,
    shared: Shared,
    said: Option<&'static str>,
}

/// What a guard has to report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// What is left of the budget: tokens, or retries that would be let through.
    pub balance: Option<f64>,
    /// Retries that the budget refused.
    pub refused: u64,
    /// How often the breaker has opened.
    pub openings: u32,
    /// The adaptive rate, in calls per second of its own time, once it is armed.
    pub rate: Option<f64>,
}

#[derive(Debug, Default)]
struct Store {
    all: Cell,
    jobs: BTreeMap<JobId, Cell>,
}

/// One sharer's state.
#[derive(Debug, Default)]
struct Cell {
    balance: Balance,
    refused: u64,
    circuit: Circuit,
    pace: Pace,
    counts: Counts,
}

/// What a job's row does not know.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Attempts that did not count.
    uncounted: u32,
    /// The attempts before a hint restarted the schedule.
    restarted: u32,
    /// Retries by kind of failure; the last is of no kind.
    by_kind: [u32; KINDS.len() + 1],
}

const KINDS: [Kind; 4] = [Kind::Throttled, Kind::Timeout, Kind::Refused, Kind::Server];

impl Guard {
    /// The guard of a worker.
    pub fn new(seed: Seed, worker: u32, shared: Shared) -> Guard {
        Guard { seed, worker, own: Cell::default(), shared, said: None }
    }

    /// Lets an attempt call, or says when to ask again.
    ///
    /// # Errors
    /// The instant: the breaker is open, or the rate is used up.
    pub fn admit(&mut self, policy: &Policy, now: Instant, job: JobId, attempt: u32) -> Result<(), Instant> {
        if let Some(breaker) = &policy.breaker {
            self.with(breaker.scope, job, |cell| cell.circuit.admit(breaker, now))?;
        }
        if let Some(rate) = &policy.rate {
            self.with(rate.scope, job, |cell| cell.pace.admit(&rate.rule, now))?;
        }
        if let Some(budget) = &policy.budget {
            self.with(budget.scope, job, |cell| cell.balance.called(&budget.rule, now, attempt <= 1));
        }
        Ok(())
    }

    /// What becomes of an attempt: the policy's decision, in view of the state and with the state in view of it.
    pub fn decide(&mut self, policy: &Policy, now: Instant, job: JobId, memory: &Memory, outcome: &Outcome) -> Decision {
        self.said = None;
        let class = policy.class(outcome);
        self.note(policy, now, job, outcome, class);
        let mut draw = self.seed.draw(Stream::Jitter, job, memory.attempt());
        let standing = self.standing(policy, job, memory, outcome, class);
        let mut decision = policy.decide_at(&standing, memory, outcome, &mut draw);
        if matches!(decision, Decision::Retry { .. }) {
            decision = self.pay(policy, now, job, outcome, class, decision);
        }
        match decision {
            Decision::Retry { .. } => self.count(policy, job, memory, outcome, class),
            Decision::Complete | Decision::Discard(_) => self.forget(policy, job),
        }
        decision
    }

    /// Why the last decision was not the policy's own, if it was not.
    pub fn said(&self) -> Option<&'static str> {
        self.said
    }

    /// How the state stands, as a job of this number meets it.
    pub fn report(&mut self, policy: &Policy, now: Instant, job: JobId) -> Report {
        let mut report = Report::default();
        if let Some(budget) = &policy.budget {
            (report.balance, report.refused) =
                self.with(budget.scope, job, |cell| (Some(cell.balance.left(&budget.rule, now)), cell.refused));
        }
        if let Some(breaker) = &policy.breaker {
            report.openings = self.with(breaker.scope, job, |cell| cell.circuit.openings);
        }
        if let Some(rate) = &policy.rate {
            report.rate = self.with(rate.scope, job, |cell| cell.pace.rate());
        }
        report
    }

    fn note(&mut self, policy: &Policy, now: Instant, job: JobId, outcome: &Outcome, class: Class) {
        if let Some(budget) = &policy.budget {
            let price = (class != Class::Success).then(|| price(outcome, class));
            self.with(budget.scope, job, |cell| cell.balance.ended(&budget.rule, job, price));
        }
        if let Some(breaker) = &policy.breaker {
            let failed = breaker.counts(outcome, class);
            let (seed, worker) = (self.seed, self.worker);
            self.with(breaker.scope, job, |cell| {
                let chance = seed.draw(Stream::Breaker, JobId(u64::from(worker)), cell.circuit.openings).unit();
                cell.circuit.note(breaker, now, failed, chance);
            });
        }
        if let Some(rate) = &policy.rate {
            self.with(rate.scope, job, |cell| cell.pace.note(&rate.rule, now, class == Class::Throttled));
        }
    }

    fn pay(
        &mut self,
        policy: &Policy,
        now: Instant,
        job: JobId,
        outcome: &Outcome,
        class: Class,
        decision: Decision,
    ) -> Decision {
        let Some(budget) = &policy.budget else { return decision };
        let answer = self.with(budget.scope, job, |cell| {
            let answer = cell.balance.ask(&budget.rule, now, job, price(outcome, class));
            cell.refused += u64::from(answer == Answer::Refused);
            answer
        });
        match (answer, decision) {
            (Answer::Refused, _) => {
                self.said = Some("retry budget spent");
                Decision::Discard(Why::Exhausted)
            }
            (Answer::NotBefore(turn), Decision::Retry { after }) => Decision::Retry { after: after.max(turn.since(now)) },
            (_, decision) => decision,
        }
    }

    /// The retry's number and how many were spent, by the policy's way of counting.
    fn standing(&mut self, policy: &Policy, job: JobId, memory: &Memory, outcome: &Outcome, class: Class) -> Standing {
        if !policy.counts_apart() {
            return Standing::of(memory);
        }
        let counts = self.with(Scope::Job, job, |cell| cell.counts);
        let spent = if policy.counter.by_failure {
            counts.by_kind[kind(outcome, class)]
        } else {
            memory.retries.saturating_sub(counts.uncounted)
        };
        Standing {
            n: spent.saturating_sub(counts.restarted).saturating_add(1),
            spent,
            most: policy.max_retries.unwrap_or(memory.max_retries),
        }
    }

    fn count(&mut self, policy: &Policy, job: JobId, memory: &Memory, outcome: &Outcome, class: Class) {
        if !policy.counts_apart() {
            return;
        }
        let restarts = policy.restarts_on(outcome);
        self.with(Scope::Job, job, |cell| {
            let counts = &mut cell.counts;
            if class == Class::Uncounted {
                counts.uncounted += 1;
            } else {
                counts.by_kind[kind(outcome, class)] += 1;
            }
            if restarts {
                counts.restarted = memory.attempt().saturating_sub(counts.uncounted);
            }
        });
    }

    fn forget(&mut self, policy: &Policy, job: JobId) {
        let scopes = [policy.budget.map(|b| b.scope), policy.breaker.as_ref().map(|b| b.scope), policy.rate.map(|r| r.scope)];
        if policy.counts_apart() || scopes.contains(&Some(Scope::Job)) {
            self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).jobs.remove(&job);
        }
    }

    fn with<T>(&mut self, scope: Scope, job: JobId, act: impl FnOnce(&mut Cell) -> T) -> T {
        if scope == Scope::Worker {
            return act(&mut self.own);
        }
        // Whoever panicked while it was locked has left whole numbers behind, at worst one call out of date.
        let mut store = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        match scope {
            Scope::Job => act(store.jobs.entry(job).or_default()),
            Scope::Worker | Scope::Process | Scope::Shared => act(&mut store.all),
        }
    }
}

fn price(outcome: &Outcome, class: Class) -> Price {
    match (class, outcome) {
        (Class::Throttled, _) => Price::Throttled,
        (_, Outcome::TimedOut) => Price::Timeout,
        _ => Price::Usual,
    }
}

fn kind(outcome: &Outcome, class: Class) -> usize {
    KINDS.iter().position(|kind| kind.holds(outcome, class)).unwrap_or(KINDS.len())
}

#[cfg(test)]
mod tests;
