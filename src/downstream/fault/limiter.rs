//! Rate limits: three ways of counting, for all callers together or for each.
//!
//! ```text
//!  token bucket    tokens come at the rate, at most `burst` are kept; a call takes one
//!  fixed window    a count that is zero again at every multiple of `per`: twice the limit fits around an edge
//!  sliding window  the calls that passed in the `per` before now: never more than the limit
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{Hint, LimiterKind, RateLimit};
use crate::call::Label;
use crate::time::{Instant, nanos, seconds};

/// The most callers that have limits of their own; further ones share one, so that a wild client can't fill the memory.
const CALLERS: usize = 10_000;
/// The most calls that a sliding window remembers.
const REMEMBERED: usize = 1_000_000;

/// The state of a rate limit.
#[derive(Debug)]
pub(in crate::downstream) struct Limiter {
    limit: RateLimit,
    since: Instant,
    counts: BTreeMap<Label, Count>,
}

/// What is remembered of one caller.
#[derive(Debug)]
enum Count {
    Bucket { tokens: f64, filled: Instant },
    Fixed { window: u64, calls: u64 },
    Sliding { passed: VecDeque<Instant> },
}

impl Limiter {
    /// A limit that nobody has used, from `since` on.
    pub(in crate::downstream) fn new(limit: RateLimit, since: Instant) -> Limiter {
        Limiter { limit, since, counts: BTreeMap::new() }
    }

    /// Takes a call in, or says after what time to come back.
    pub(super) fn take(&mut self, now: Instant, caller: Label) -> Result<(), Option<Duration>> {
        let own = if self.limit.per_caller { caller } else { Label::NONE };
        let key = if self.counts.contains_key(&own) || self.counts.len() < CALLERS { own } else { Label::NONE };
        let (limit, since) = (self.limit, self.since);
        let count = self.counts.entry(key).or_insert_with(|| Count::unused(&limit, since));
        let wait = match count.take(now, &limit) {
            None => return Ok(()),
            Some(wait) => wait,
        };
        Err(match limit.retry_after {
            Hint::None => None,
            Hint::After(after) => Some(after),
            // Whole seconds are all that the header can say, and none would be an invitation.
            Hint::Reset => Some(Duration::from_secs(nanos(wait).div_ceil(1_000_000_000).max(1))),
        })
    }
}

impl Count {
    fn unused(limit: &RateLimit, since: Instant) -> Count {
        match limit.limiter {
            LimiterKind::TokenBucket => Count::Bucket { tokens: f64::from(limit.burst), filled: since },
            LimiterKind::FixedWindow => Count::Fixed { window: 0, calls: 0 },
            LimiterKind::SlidingWindow => Count::Sliding { passed: VecDeque::new() },
        }
    }

    /// Counts a call; how long until one passes, if this one does not.
    fn take(&mut self, now: Instant, limit: &RateLimit) -> Option<Duration> {
        let per = nanos(limit.per).max(1);
        let allowed = ((limit.rate * limit.per.as_secs_f64()).round() as u64).clamp(1, REMEMBERED as u64);
        match self {
            Count::Bucket { tokens, filled } => {
                *tokens = (*tokens + now.since(*filled).as_secs_f64() * limit.rate).min(f64::from(limit.burst));
                *filled = now.max(*filled);
                if *tokens >= 1.0 {
                    *tokens -= 1.0;
                    return None;
                }
                Some(seconds((1.0 - *tokens) / limit.rate))
            }
            Count::Fixed { window, calls } => {
                let current = now.as_nanos() / per;
                if *window != current {
                    (*window, *calls) = (current, 0);
                }
                if *calls < allowed {
                    *calls += 1;
                    return None;
                }
                Some(Duration::from_nanos(per - now.as_nanos() % per))
            }
            Count::Sliding { passed } => {
                while passed.front().is_some_and(|first| nanos(now.since(*first)) >= per) {
                    passed.pop_front();
                }
                if (passed.len() as u64) < allowed {
                    passed.push_back(now);
                    return None;
                }
                passed.front().map(|first| Duration::from_nanos(per.saturating_sub(nanos(now.since(*first)))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn limiter(kind: LimiterKind, per_caller: bool) -> Limiter {
        let limit = RateLimit::bucket(10.0, 5, Duration::from_secs(1));
        Limiter::new(RateLimit { limiter: kind, per_caller, retry_after: Hint::Reset, ..limit }, Instant::START)
    }

    fn passed(limiter: &mut Limiter, times: impl Iterator<Item = u64>) -> Vec<u64> {
        times.filter(|ms| limiter.take(at(*ms), Label::NONE).is_ok()).collect()
    }

    #[test]
    fn around_the_edge_of_a_fixed_window_twice_the_limit_passes_and_of_a_sliding_one_once() {
        let burst = || (950..=1050).step_by(5);
        assert_eq!(passed(&mut limiter(LimiterKind::FixedWindow, false), burst()).len(), 20);
        assert_eq!(passed(&mut limiter(LimiterKind::SlidingWindow, false), burst()).len(), 10);
        let bucket = passed(&mut limiter(LimiterKind::TokenBucket, false), burst()).len();
        assert!((5..=6).contains(&bucket), "a full bucket of 5, and perhaps what came in a tenth of a second: {bucket}");
    }

    #[test]
    fn the_hint_counts_down_to_the_reset() {
        let mut limiter = Limiter::new(
            RateLimit {
                limiter: LimiterKind::FixedWindow,
                per: Duration::from_secs(10),
                retry_after: Hint::Reset,
                ..RateLimit::bucket(0.1, 1, Duration::ZERO)
            },
            Instant::START,
        );
        assert_eq!(limiter.take(at(10_000), Label::NONE), Ok(()));
        let hints = [10_001, 14_999, 15_000, 19_999].map(|ms| limiter.take(at(ms), Label::NONE));
        assert_eq!(hints, [10, 6, 5, 1].map(|secs| Err(Some(Duration::from_secs(secs)))));
        assert_eq!(limiter.take(at(20_000), Label::NONE), Ok(()));
    }

    #[test]
    fn callers_have_limits_of_their_own_or_share_one() {
        let calls = |limiter: &mut Limiter| {
            ["a", "b"].map(|name| (0..20).filter(|_| limiter.take(at(0), Label::of(name)).is_ok()).count())
        };
        assert_eq!(calls(&mut limiter(LimiterKind::FixedWindow, true)), [10, 10]);
        assert_eq!(calls(&mut limiter(LimiterKind::FixedWindow, false)), [10, 0]);
    }

    #[test]
    fn a_flood_of_callers_is_bounded() {
        let mut limiter = limiter(LimiterKind::TokenBucket, true);
        for n in 0..2 * CALLERS {
            let _ = limiter.take(at(0), Label::of(&n.to_string()));
        }
        assert!(limiter.counts.len() <= CALLERS + 1);
    }

    proptest! {
        #[test]
        fn no_window_lets_more_than_the_limit_through(mut times in proptest::collection::vec(0..5_000_u64, 0..300)) {
            times.sort_unstable();
            let passed = passed(&mut limiter(LimiterKind::SlidingWindow, false), times.into_iter());
            for from in &passed {
                prop_assert!(passed.iter().filter(|ms| *ms >= from && **ms < from + 1000).count() <= 10);
            }
        }
    }
}
