//! A policy as an iterator of delays: what other retry libraries take for a schedule.
//!
//! `backon` and `tokio-retry` accept any `Iterator<Item = Duration>`, so a policy drops into them as it is, without a feature and
//! without a dependency. Failures are theirs to judge: classes, hints, budgets and clocks play no part here.
//!
//! ```
//! use simq::{job::JobId, policy::preset, rng::Seed};
//!
//! let river = preset::find("river").expect("there is one").policy();
//! let delays = river.delays(Seed(7), JobId(1));
//! assert_eq!(delays.count(), 24);
//! ```

use std::time::Duration;

use super::Policy;
use crate::job::JobId;
use crate::rng::{Seed, Stream};

/// The delays of one job, retry by retry, until its retries are spent.
#[derive(Clone, Debug)]
pub struct Delays {
    policy: Policy,
    seed: Seed,
    job: JobId,
    retries: u32,
    last: Option<Duration>,
    elapsed: Duration,
}

impl Policy {
    /// The delays of this job under this seed; without an end where the policy has no limit. A limit of time counts the delays
    /// alone.
    pub fn delays(&self, seed: Seed, job: JobId) -> Delays {
        Delays { policy: self.clone(), seed, job, retries: 0, last: None, elapsed: Duration::ZERO }
    }
}

impl Iterator for Delays {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let n = self.retries.saturating_add(1);
        if self.retries >= self.policy.most() || self.policy.is_over_at(n) {
            return None;
        }
        let delay = self.policy.delay(n, self.last, &mut self.seed.draw(Stream::Jitter, self.job, n));
        if self.policy.limit.is_over(self.elapsed, delay) {
            return None;
        }
        (self.retries, self.last, self.elapsed) = (n, Some(delay), self.elapsed.saturating_add(delay));
        Some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::preset;

    fn policy(id: &str) -> Policy {
        preset::find(id).expect("a preset").policy()
    }

    #[test]
    fn a_policy_is_a_schedule_to_other_libraries() {
        fn taken_by_backon(_: impl backon::BackoffBuilder) {}
        taken_by_backon(policy("oban").delays(Seed(1), JobId(1)));
    }

    #[test]
    fn it_ends_when_retries_or_time_are_spent() {
        assert_eq!(policy("sidekiq").delays(Seed(1), JobId(1)).count(), 25);
        assert_eq!(policy("temporal.activity").delays(Seed(1), JobId(1)).take(1000).count(), 1000);
        let within: Duration = policy("cenkalti").delays(Seed(1), JobId(1)).sum();
        assert!(within <= Duration::from_secs(900) && within > Duration::from_secs(600));
        assert_eq!(policy("k8s.retry.DefaultBackoff").delays(Seed(1), JobId(1)).count(), 3);
    }

    /// T-37: two jobs do not share what one of them changed.
    #[test]
    fn t37_schedules_of_two_jobs_are_apart() {
        let policy = policy("aws-blog.decorrelated(1,60)");
        let (mut one, mut other) = (policy.delays(Seed(1), JobId(1)), policy.delays(Seed(1), JobId(2)));
        let alone: Vec<Duration> = policy.delays(Seed(1), JobId(2)).take(5).collect();
        let mixed: Vec<Duration> = (0..5).filter_map(|_| one.next().and(other.next())).collect();
        assert_eq!(alone, mixed);
    }
}
