//! The curves: how long to wait before retry n, before chance and cap.

use std::time::Duration;

use serde::Serialize;

use crate::time::seconds;

/// The wait as a function of the retry's number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Backoff {
    /// Retry at once. What most queues do when the user writes only a number of tries.
    None,
    /// Always the same wait.
    Constant {
        /// The wait.
        delay: Duration,
    },
    /// `base + step · (n − 1)`.
    Linear {
        /// The wait before the first retry.
        base: Duration,
        /// What each further retry adds.
        step: Duration,
    },
    /// `base · factor^(n − 1)`: 2 s, 4 s, 8 s … for a base of 2 s and a factor of 2.
    ///
    /// Source: the curve of binary exponential backoff, Metcalfe and Boggs, "Ethernet", CACM 19(7), 1976.
    Exponential {
        /// The wait before the first retry; above zero.
        base: Duration,
        /// Growth from retry to retry; at least 1.
        factor: f64,
    },
}

impl Backoff {
    /// The wait before retry `n`, from 1. Never falls as `n` grows; saturates instead of overflowing.
    pub fn before_retry(&self, n: u32) -> Duration {
        let earlier = n.saturating_sub(1);
        match *self {
            Backoff::None => Duration::ZERO,
            Backoff::Constant { delay } => delay,
            Backoff::Linear { base, step } => base.saturating_add(step.saturating_mul(earlier)),
            // Past 2^1024 the power is infinite and `seconds` saturates; i32::MAX is past that for every factor above 1.
            Backoff::Exponential { base, factor } => {
                seconds(base.as_secs_f64() * factor.powi(i32::try_from(earlier).unwrap_or(i32::MAX)))
            }
        }
    }

    /// The wait before the first retry: the unit that decorrelated jitter grows from.
    pub fn base(&self) -> Duration {
        self.before_retry(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_doubles_from_its_base() {
        let curve = Backoff::Exponential { base: Duration::from_millis(100), factor: 2.0 };
        let waits: Vec<u128> = (1..=5).map(|n| curve.before_retry(n).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600]);
    }

    #[test]
    fn extreme_retries_saturate() {
        let curve = Backoff::Exponential { base: Duration::from_secs(2), factor: 2.0 };
        let last = curve.before_retry(32);
        for n in [33, 63, 64, 65, 310, 1024, 1100, u32::MAX] {
            assert!(curve.before_retry(n) >= last, "retry {n}");
        }
        assert_eq!(curve.before_retry(u32::MAX), Duration::from_nanos(u64::MAX));
    }
}
