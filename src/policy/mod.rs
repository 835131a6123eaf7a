//! When is a failed job tried again, and when is it given up?
//!
//! A [`Policy`] is immutable data. Everything it needs arrives as an argument: the job's own [`Memory`], what happened,
//! and a keyed [`Draw`]. It knows no clock, no queue and no worker.
//!
//! ```text
//! outcome ─► ok? ──────────────► Complete
//!            permanent? ───────► Discard(Permanent)      (unless `classify` is off)
//!            retries spent? ───► Discard(Exhausted)
//!            curve(n) ─► cap ─► jitter ─► Retry-After ─► Retry { after }
//! ```
//! `n` is the number of the retry being planned, from 1.

mod backoff;
mod jitter;

use std::time::Duration;

use serde::Serialize;

pub use backoff::Backoff;
pub use jitter::Jitter;

pub use crate::job::Why;

use crate::call::Outcome;
use crate::job::Memory;
use crate::rng::Draw;

/// How a queue retries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// The wait before each retry, before chance plays on it.
    pub backoff: Backoff,
    /// The wait is never longer than this before jitter is applied; jitter that adds may exceed it, as in the field.
    pub cap: Option<Duration>,
    /// How the wait is randomised.
    pub jitter: Jitter,
    /// Retries allowed, in place of each job's own number.
    pub max_retries: Option<u32>,
    /// Tell permanent failures from transient ones, and give up at once on the permanent. Off: every failure is retried,
    /// as in a queue that never looks at the error.
    pub classify: bool,
    /// What a Retry-After in the answer does.
    pub retry_after: RetryAfter,
}

/// What a server's Retry-After does to the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryAfter {
    /// Nothing: so does every job queue by default.
    Ignore,
    /// The delay is at least what the server asked for, so jitter never undercuts it.
    AtLeast,
    /// The delay is what the server asked for, exactly: all callers come back together.
    Replace,
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

impl Policy {
    /// Decides what becomes of the attempt that ended in `outcome`.
    ///
    /// The draw must be keyed by the job and the attempt that failed. Total: every outcome has a decision, no
    /// arithmetic overflows, and a delay is at most [`Policy::longest`] for as long as no server asks for more.
    pub fn decide(&self, memory: &Memory, outcome: &Outcome, draw: &mut Draw) -> Decision {
        if *outcome == Outcome::Ok {
            return Decision::Complete;
        }
        if self.classify && !outcome.is_transient() {
            return Decision::Discard(Why::Permanent);
        }
        if memory.retries >= memory.max_retries {
            return Decision::Discard(Why::Exhausted);
        }
        let after = self.delay(memory.attempt(), memory.last_delay, draw);
        Decision::Retry { after: self.heed(after, outcome) }
    }

    /// The delay before retry `n` (from 1), with the server's wish left out.
    pub fn delay(&self, n: u32, last_delay: Option<Duration>, draw: &mut Draw) -> Duration {
        let backoff = self.backoff.before_retry(n);
        let capped = self.cap.map_or(backoff, |cap| backoff.min(cap));
        self.jitter.apply(capped, last_delay, self.backoff.base(), self.cap, draw)
    }

    /// No delay of this policy before retry `n` is longer, whatever is drawn; the longest duration where nothing bounds it.
    pub fn longest(&self, n: u32) -> Duration {
        let backoff = self.backoff.before_retry(n);
        let capped = self.cap.map_or(backoff, |cap| backoff.min(cap));
        self.jitter.longest(capped, self.cap)
    }

    fn heed(&self, after: Duration, outcome: &Outcome) -> Duration {
        let hint = match *outcome {
            Outcome::Status { retry_after, .. } => retry_after,
            _ => None,
        };
        match (self.retry_after, hint) {
            (RetryAfter::AtLeast, Some(hint)) => after.max(hint),
            (RetryAfter::Replace, Some(hint)) => hint,
            (RetryAfter::Ignore, _) | (_, None) => after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::rng::{Seed, Stream};
    use proptest::prelude::*;

    fn policy(backoff: Backoff, jitter: Jitter, cap: Option<Duration>) -> Policy {
        Policy { backoff, cap, jitter, max_retries: None, classify: true, retry_after: RetryAfter::Ignore }
    }

    fn exponential() -> Backoff {
        Backoff::Exponential { base: Duration::from_secs(2), factor: 2.0 }
    }

    fn memory(retries: u32, max_retries: u32) -> Memory {
        Memory { retries, max_retries, last_delay: None, age: Duration::ZERO }
    }

    fn draw(job: u64, attempt: u32) -> Draw {
        Seed(1).draw(Stream::Jitter, JobId(job), attempt)
    }

    #[test]
    fn the_articles_schedule_is_two_four_eight_and_then_gives_up() {
        let policy = policy(exponential(), Jitter::None, None);
        let fail = Outcome::status(503);
        let after: Vec<Decision> = (0..4).map(|spent| policy.decide(&memory(spent, 3), &fail, &mut draw(1, spent + 1))).collect();
        let secs = |s| Decision::Retry { after: Duration::from_secs(s) };
        assert_eq!(after, [secs(2), secs(4), secs(8), Decision::Discard(Why::Exhausted)]);
    }

    #[test]
    fn a_permanent_failure_is_given_up_at_once_unless_nobody_looks() {
        let mut policy = policy(exponential(), Jitter::None, None);
        let fail = Outcome::status(422);
        assert_eq!(policy.decide(&memory(0, 3), &fail, &mut draw(1, 1)), Decision::Discard(Why::Permanent));
        policy.classify = false;
        assert!(matches!(policy.decide(&memory(0, 3), &fail, &mut draw(1, 1)), Decision::Retry { .. }));
    }

    #[test]
    fn retry_after_is_heeded_as_told() {
        let mut policy = policy(exponential(), Jitter::None, None);
        let hint = |secs| Outcome::Status { code: 429, retry_after: Some(Duration::from_secs(secs)) };
        let mut after = |rule, secs| {
            policy.retry_after = rule;
            policy.decide(&memory(0, 3), &hint(secs), &mut draw(1, 1))
        };
        let secs = |s| Decision::Retry { after: Duration::from_secs(s) };
        assert_eq!(after(RetryAfter::Ignore, 5), secs(2));
        assert_eq!(after(RetryAfter::AtLeast, 5), secs(5));
        assert_eq!(after(RetryAfter::AtLeast, 1), secs(2));
        assert_eq!(after(RetryAfter::Replace, 1), secs(1));
    }

    fn any_backoff() -> impl Strategy<Value = Backoff> {
        let ms = |range: std::ops::Range<u64>| range.prop_map(Duration::from_millis);
        prop_oneof![
            Just(Backoff::None),
            ms(0..10_000).prop_map(|delay| Backoff::Constant { delay }),
            (ms(0..10_000), ms(0..10_000)).prop_map(|(base, step)| Backoff::Linear { base, step }),
            (ms(1..10_000), 1.0..4.0_f64).prop_map(|(base, factor)| Backoff::Exponential { base, factor }),
        ]
    }

    fn any_jitter() -> impl Strategy<Value = Jitter> {
        prop_oneof![
            Just(Jitter::None),
            Just(Jitter::Full),
            Just(Jitter::Equal),
            Just(Jitter::Decorrelated),
            (0.0..=1.0_f64).prop_map(|share| Jitter::Proportional { share }),
            (0..5_000_u64).prop_map(|ms| Jitter::Additive { spread: Duration::from_millis(ms) }),
        ]
    }

    proptest! {
        #[test]
        fn every_delay_is_within_its_bound_for_every_attempt(
            backoff in any_backoff(), jitter in any_jitter(), job in any::<u64>(),
            n in prop_oneof![1..70_u32, Just(310), Just(1024), Just(u32::MAX)],
            cap in proptest::option::of(10_000..100_000_u64), last in proptest::option::of(0..100_000_u64),
        ) {
            let policy = policy(backoff, jitter, cap.map(Duration::from_millis));
            let last = last.map(Duration::from_millis);
            let delay = policy.delay(n, last, &mut draw(job, n));
            prop_assert!(delay <= policy.longest(n), "{delay:?} > {:?}", policy.longest(n));
            prop_assert_eq!(delay, policy.delay(n, last, &mut draw(job, n)), "asking twice gives the same delay");
        }

        #[test]
        fn the_curve_never_falls(backoff in any_backoff(), n in prop_oneof![1..2000_u32, Just(u32::MAX - 1)]) {
            prop_assert!(backoff.before_retry(n) <= backoff.before_retry(n + 1));
        }
    }

    #[test]
    fn jitter_spreads_over_jobs_that_failed_together() {
        for jitter in [
            Jitter::Full,
            Jitter::Equal,
            Jitter::Decorrelated,
            Jitter::Proportional { share: 0.1 },
            Jitter::Additive { spread: Duration::from_secs(1) },
        ] {
            let policy = policy(exponential(), jitter.clone(), None);
            let mut delays: Vec<Duration> = (0..10_000).map(|job| policy.delay(1, None, &mut draw(job, 1))).collect();
            delays.sort();
            delays.dedup();
            assert!(delays.len() > 9_900, "{jitter:?} gave {} values", delays.len());
        }
    }
}
