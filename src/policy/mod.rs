//! When is a failed job tried again, and when is it given up?
//!
//! A [`Policy`] is immutable data, put together from small parts. Everything it needs arrives as an argument: the job's own
//! [`Memory`], what happened, and a keyed [`Draw`]. It knows no clock, no queue and no worker.
//!
//! ```text
//! outcome ─► class? ── success ────► Complete
//!                   └─ fatal ──────► Discard(Permanent)
//!            retries or time spent ► Discard(Exhausted)
//!            counter ─► curve ─► plus, minus ─► cap and jitter in their order ─► grain ─► pad ─► floor
//!                    ─► Retry-After ─► Retry { after }
//! ```
//! `n` is the number of the retry being planned, from 1. Every part has a neutral value, and [`Policy::default`] has them all:
//! retry at once, as often as the job allows.
//!
//! What is shared between jobs (budget, breaker, rate) is not here: [`Guard`] keeps it, and a worker owns the guard. What real
//! systems ship is in [`preset`]; which delays a policy can give, exactly, in [`cells`].

mod backoff;
mod breaker;
mod budget;
pub mod cells;
mod clamp;
mod classify;
mod delay;
mod delays;
mod expression;
mod guard;
mod hint;
mod jitter;
mod limit;
pub mod preset;
mod rate;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Serialize;

pub use backoff::{Backoff, Tail};
pub use breaker::{Breaker, Trip};
pub use budget::{Budget, BudgetRule};
pub use clamp::{Ends, Grain, Order};
pub use classify::{Class, Classes, Kind, Pattern};
pub use delay::{Counter, First};
pub use delays::Delays;
pub use expression::{Expression, Fault, Settings as ExpressionSettings};
pub use guard::{Guard, Report, Scope, Shared};
pub use hint::{Heed, RetryAfter};
pub use jitter::{AtCap, Jitter, Row};
pub use limit::Limit;
pub use rate::{Rate, RateRule};

pub use crate::job::Why;

use crate::call::Outcome;
use crate::job::Memory;
use crate::rng::Draw;

/// How a queue retries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// The wait before each retry, before chance plays on it.
    pub backoff: Backoff,
    /// Added to the curve, before cap and jitter: the 15 s of Sidekiq.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub plus: Duration,
    /// Taken from the curve, not below zero.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub minus: Duration,
    /// How retries are counted for the curve.
    #[serde(skip_serializing_if = "is_neutral")]
    pub counter: Counter,
    /// What the first retry waits.
    #[serde(skip_serializing_if = "is_neutral")]
    pub first: First,
    /// No delay is shorter, whatever was drawn: jitter below it is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<Duration>,
    /// No wait is longer; what that means for the delay is `order`'s to say.
    pub cap: Option<Duration>,
    /// Whether the cap comes before jitter, after it, or both.
    #[serde(skip_serializing_if = "is_neutral")]
    pub order: Order,
    /// How the wait is randomised.
    pub jitter: Jitter,
    /// The unit of delays.
    #[serde(skip_serializing_if = "is_neutral")]
    pub grain: Grain,
    /// Added after jitter, and so without any.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub pad: Duration,
    /// Other policies whose delays are taken for these kinds of failure; of those policies, nothing else is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_failure: Vec<(Kind, Policy)>,
    /// What the delay counts from, and what it is rounded up to.
    #[serde(skip_serializing_if = "is_neutral")]
    pub clock: Clock,
    /// Retries allowed, in place of each job's own number; [`u32::MAX`] is no limit.
    pub max_retries: Option<u32>,
    /// What else ends the retries.
    #[serde(skip_serializing_if = "is_neutral")]
    pub limit: Limit,
    /// Tell permanent failures from transient ones, and give up at once on the permanent. Off: every failure is retried,
    /// as in a queue that never looks at the error.
    pub classify: bool,
    /// What `classify` alone does not say.
    #[serde(skip_serializing_if = "Classes::is_empty")]
    pub classes: Classes,
    /// What a Retry-After in the answer does.
    pub retry_after: RetryAfter,
    /// Which Retry-After counts.
    #[serde(skip_serializing_if = "is_neutral")]
    pub heed: Heed,
    /// What retries have to be paid from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What stops calls to a service that is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Breaker>,
    /// How fast calls may be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// Where a delay begins, and how fine a promoter's clock is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Clock {
    /// What the delay counts from.
    pub base: ClockBase,
    /// A retry comes due at the next multiple of this, as where a scheduler promotes retries every so often. Zero: when it is due.
    pub quantum: Duration,
}

/// What a delay counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockBase {
    /// The failure, as nearly everywhere.
    #[default]
    Failure,
    /// The claim: a slow attempt uses its delay up (sqlxmq, SQS; River's first releases).
    Claim,
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The job is done.
    Complete,
    /// Try again, `after` so long from the moment the store hears of it.
    Retry {
        /// The delay.
        after: Duration,
    },
    /// Give up.
    Discard(Why),
}

/// Where a job stands on its schedule.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// The retry being planned, for the curve.
    n: u32,
    /// Retries that count as spent.
    spent: u32,
    /// Retries allowed.
    most: u32,
}

impl Standing {
    fn of(memory: &Memory) -> Standing {
        Standing { n: memory.attempt(), spent: memory.retries, most: memory.max_retries }
    }
}

/// Retries at once, as often as the job allows, and looks at no error.
impl Default for Policy {
    fn default() -> Policy {
        Policy {
            backoff: Backoff::None,
            plus: Duration::ZERO,
            minus: Duration::ZERO,
            counter: Counter::default(),
            first: First::Scheduled,
            floor: None,
            cap: None,
            order: Order::CapFirst,
            jitter: Jitter::None,
            grain: Grain::NONE,
            pad: Duration::ZERO,
            by_failure: Vec::new(),
            clock: Clock::default(),
            max_retries: None,
            limit: Limit::default(),
            classify: false,
            classes: Classes::default(),
            retry_after: RetryAfter::Ignore,
            heed: Heed::default(),
            budget: None,
            breaker: None,
            rate: None,
        }
    }
}

impl Policy {
    /// Decides what becomes of the attempt that ended in `outcome`.
    ///
    /// The draw must be keyed by the job and the attempt that failed. Total: every outcome has a decision, no
    /// arithmetic overflows, and a delay is at most [`Policy::longest`] for as long as no server asks for more. Budget, breaker, rate
    /// and counters of a policy's own are left out: see [`Guard::decide`].
    pub fn decide(&self, memory: &Memory, outcome: &Outcome, draw: &mut Draw) -> Decision {
        self.decide_at(&Standing::of(memory), memory, outcome, draw)
    }

    fn decide_at(&self, standing: &Standing, memory: &Memory, outcome: &Outcome, draw: &mut Draw) -> Decision {
        let class = self.class(outcome);
        match class {
            Class::Success => return Decision::Complete,
            Class::Fatal => return Decision::Discard(Why::Permanent),
            Class::Retry | Class::Throttled | Class::Uncounted => {}
        }
        let timing = self.by_failure.iter().find(|(kind, _)| kind.holds(outcome, class)).map_or(self, |(_, timing)| timing);
        if (class != Class::Uncounted && standing.spent >= standing.most) || timing.is_over_at(standing.n) {
            return Decision::Discard(Why::Exhausted);
        }
        let drawn = timing.delay_of(standing.n, standing.most, memory.last_delay, draw);
        let heeded = match self.heed.hint(outcome) {
            Some(hint) => self.retry_after.apply(drawn, hint, draw),
            None => Some(drawn),
        };
        match heeded {
            Some(after) if !self.limit.is_over(memory.age, after) => Decision::Retry { after },
            _ => Decision::Discard(Why::Exhausted),
        }
    }

    /// What an outcome means to this policy.
    pub fn class(&self, outcome: &Outcome) -> Class {
        let class = self.classes.of(outcome, self.classify);
        let rescued = class == Class::Fatal && self.heed.any_failure && self.heed.hint(outcome).is_some();
        if rescued { Class::Retry } else { class }
    }

    /// The limit to be put on each job's row in place of its own. A policy that counts apart from the row wants none there.
    pub fn row_limit(&self) -> Option<u32> {
        const NONE: u32 = i32::MAX as u32;
        if self.counts_apart() && self.max_retries.is_some() { Some(NONE) } else { self.max_retries.map(|most| most.min(NONE)) }
    }

    /// Whether a job's row does not know by itself how many retries this policy has counted.
    fn counts_apart(&self) -> bool {
        self.counter.by_failure || !self.classes.uncounted.is_empty() || self.retry_after == RetryAfter::Restart
    }

    /// Whether this outcome's hint begins the schedule anew.
    fn restarts_on(&self, outcome: &Outcome) -> bool {
        self.retry_after == RetryAfter::Restart && self.heed.hint(outcome).is_some()
    }

    /// The same policy in a time that runs `factor` times as slow: with 0.001, hours become seconds. Every delay, width, grain, window
    /// and rate is scaled, so the picture stays the same. What a server asks for is in its own time and is not.
    pub fn scaled(&self, factor: f64) -> Policy {
        let by = |duration| backoff::scaled(duration, factor);
        Policy {
            backoff: self.backoff.scaled(factor),
            plus: by(self.plus),
            minus: by(self.minus),
            counter: self.counter,
            first: self.first,
            floor: self.floor.map(by),
            cap: self.cap.map(by),
            order: self.order,
            jitter: self.jitter.scaled(factor),
            grain: self.grain.scaled(factor),
            pad: by(self.pad),
            by_failure: self.by_failure.iter().map(|(kind, policy)| (*kind, policy.scaled(factor))).collect(),
            clock: Clock { base: self.clock.base, quantum: by(self.clock.quantum) },
            max_retries: self.max_retries,
            limit: self.limit.scaled(factor),
            classify: self.classify,
            classes: self.classes.clone(),
            retry_after: self.retry_after.scaled(factor),
            heed: self.heed.clone(),
            budget: self.budget.map(|budget| budget.scaled(factor)),
            breaker: self.breaker.as_ref().map(|breaker| breaker.scaled(factor)),
            rate: self.rate.map(|rate| rate.scaled(factor)),
        }
    }
}

fn is_neutral<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
