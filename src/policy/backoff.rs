//! The curves: how long to wait before retry n, before chance and cap.
//!
//! All arithmetic is in nanoseconds as `f64`: whole numbers are exact up to 104 days and 2^1024 is far beyond any delay, so a
//! curve saturates and never wraps, which is what many queues got wrong (River, asynq, Polly, Envoy, fang).

use std::time::Duration;

use serde::Serialize;

use super::expression::Expression;
use crate::time::{nanos, seconds};

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
    /// Exponential, but each step is cut to a whole number of units before the next is made of it.
    ///
    /// Source: resilience4j, `IntervalFunction.java`; Spring Framework 7, `ExponentialBackOff.java`.
    Stepped {
        /// The wait before the first retry; above zero.
        base: Duration,
        /// Growth from retry to retry; at least 1.
        factor: f64,
        /// The unit; above zero.
        unit: Duration,
    },
    /// `base · (n − offset)^power`: the n⁴ family of job queues.
    ///
    /// Source: delayed_job, `lib/delayed/backend/base.rb`, whence Sidekiq and the others.
    Polynomial {
        /// The unit.
        base: Duration,
        /// What is taken from n first; 1 makes the first wait zero.
        offset: u32,
        /// The exponent, at least 1.
        power: f64,
    },
    /// `base` times 1, 2, 3, 5, 8 …
    Fibonacci {
        /// The unit.
        base: Duration,
    },
    /// A list of waits.
    List {
        /// The waits; at least one.
        delays: Vec<Duration>,
        /// What happens where it is shorter than the retries.
        tail: Tail,
    },
    /// All of these together.
    Sum {
        /// The parts.
        parts: Vec<Backoff>,
    },
    /// A formula of the user's own.
    Expression {
        /// The formula.
        delay: Box<Expression>,
    },
}

/// What happens where a list is shorter than the number of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tail {
    /// Its last wait repeats.
    Last,
    /// Its first wait repeats, at the beginning: the list is read from its end. Of a longer list only the end is used.
    ///
    /// Source: RQ, `rq/job.py`: the index is `max(length − retries left, 0)`.
    First,
    /// The retries end with it.
    Stop,
}

impl Backoff {
    /// The wait before retry `n`, from 1. Never falls as `n` grows (an expression may); saturates instead of overflowing.
    pub fn before_retry(&self, n: u32) -> Duration {
        saturate(self.nanos(n, u32::MAX))
    }

    /// The wait before the first retry: the unit that decorrelated jitter grows from.
    pub fn base(&self) -> Duration {
        self.before_retry(1)
    }

    /// The wait before retry `n` of at most `most`, in nanoseconds.
    pub(super) fn nanos(&self, n: u32, most: u32) -> f64 {
        let earlier = n.saturating_sub(1);
        match self {
            Backoff::None | Backoff::Expression { .. } => 0.0,
            Backoff::Constant { delay } => float(*delay),
            Backoff::Linear { base, step } => float(*base) + float(*step) * f64::from(earlier),
            Backoff::Exponential { base, factor } => float(*base) * power(*factor, earlier),
            Backoff::Stepped { base, factor, unit } => stepped(float(*base), *factor, float(*unit), earlier),
            Backoff::Polynomial { base, offset, power } => float(*base) * f64::from(n.saturating_sub(*offset)).powf(*power),
            Backoff::Fibonacci { base } => float(*base) * fibonacci(n),
            Backoff::List { delays, tail } => delays.get(index(n, most, delays.len(), *tail)).copied().map_or(0.0, float),
            Backoff::Sum { parts } => parts.iter().map(|part| part.nanos(n, most)).sum(),
        }
    }

    /// The last retry it has a wait for.
    pub(super) fn last_retry(&self) -> u32 {
        match self {
            Backoff::List { delays, tail: Tail::Stop } => u32::try_from(delays.len()).unwrap_or(u32::MAX),
            Backoff::Sum { parts } => parts.iter().map(Backoff::last_retry).min().unwrap_or(u32::MAX),
            _ => u32::MAX,
        }
    }

    /// The same curve in a time that runs `factor` times as slow; below 1 it is a faster one.
    pub(super) fn scaled(&self, factor: f64) -> Backoff {
        let by = |duration: &Duration| scaled(*duration, factor);
        match self {
            Backoff::None => Backoff::None,
            Backoff::Constant { delay } => Backoff::Constant { delay: by(delay) },
            Backoff::Linear { base, step } => Backoff::Linear { base: by(base), step: by(step) },
            Backoff::Exponential { base, factor } => Backoff::Exponential { base: by(base), factor: *factor },
            Backoff::Stepped { base, factor, unit } => Backoff::Stepped { base: by(base), factor: *factor, unit: by(unit) },
            Backoff::Polynomial { base, offset, power } => Backoff::Polynomial { base: by(base), offset: *offset, power: *power },
            Backoff::Fibonacci { base } => Backoff::Fibonacci { base: by(base) },
            Backoff::List { delays, tail } => Backoff::List { delays: delays.iter().map(by).collect(), tail: *tail },
            Backoff::Sum { parts } => Backoff::Sum { parts: parts.iter().map(|part| part.scaled(factor)).collect() },
            Backoff::Expression { delay } => Backoff::Expression { delay: Box::new(delay.scaled(factor)) },
        }
    }
}

/// A duration in nanoseconds.
pub(super) fn float(duration: Duration) -> f64 {
    nanos(duration) as f64
}

/// A number of nanoseconds as a duration: negative and NaN give zero, too large the longest there is.
pub(super) fn saturate(nanos: f64) -> Duration {
    if nanos.is_nan() { Duration::ZERO } else { Duration::from_nanos(nanos as u64) }
}

/// A duration in a time that runs `factor` times as slow, to the nearest nanosecond. What was above zero stays above it.
pub(super) fn scaled(duration: Duration, factor: f64) -> Duration {
    if duration.is_zero() || factor == 1.0 {
        return duration;
    }
    seconds(duration.as_secs_f64() * factor + 0.5e-9).max(Duration::from_nanos(1))
}

/// `factor^n`. Past 2^1024 it is infinite, and `i32::MAX` is past that for every factor that is worth the name.
fn power(factor: f64, n: u32) -> f64 {
    const BIAS: u32 = 1023;
    const MANTISSA: u32 = 52;
    if factor == 2.0 && n <= BIAS {
        // A power of two is an exponent and nothing else: exact on every platform, and quicker than multiplying.
        return f64::from_bits(u64::from(BIAS + n) << MANTISSA);
    }
    factor.powi(i32::try_from(n).unwrap_or(i32::MAX))
}

/// Grows step by step, each cut to the unit; ends early where it stands still or has left the range of durations.
fn stepped(base: f64, factor: f64, unit: f64, steps: u32) -> f64 {
    let mut wait = base;
    for _ in 0..steps {
        let next = (wait * factor / unit + 1e-9).floor() * unit;
        if next <= wait || next > u64::MAX as f64 {
            return next.max(wait);
        }
        wait = next;
    }
    wait
}

/// 1, 2, 3, 5, 8 …
fn fibonacci(n: u32) -> f64 {
    let (mut this, mut next) = (1.0, 2.0);
    for _ in 1..n.min(200) {
        (this, next) = (next, this + next);
    }
    this
}

/// Where in a list of `length` the wait before retry `n` of at most `most` stands; beyond it where there is none.
fn index(n: u32, most: u32, length: usize, tail: Tail) -> usize {
    let at = n.saturating_sub(1) as usize;
    match tail {
        Tail::Stop => at,
        Tail::Last => at.min(length.saturating_sub(1)),
        Tail::First => length.saturating_sub((most as usize).saturating_sub(at).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn exponential_doubles_from_its_base() {
        let curve = Backoff::Exponential { base: Duration::from_millis(100), factor: 2.0 };
        let waits: Vec<u128> = (1..=5).map(|n| curve.before_retry(n).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600]);
    }

    #[test]
    fn powers_of_two_are_what_multiplying_gives() {
        for n in [0, 1, 2, 31, 52, 64, 1022, 1023, 1024, 5000] {
            assert_eq!(power(2.0, n), 2.0_f64.powi(n as i32), "2^{n}");
        }
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

    #[test]
    fn steps_are_cut_one_by_one() {
        let curve = Backoff::Stepped { base: 2 * S, factor: 1.5, unit: Duration::from_millis(1) };
        let waits: Vec<u128> = (1..=7).map(|n| curve.before_retry(n).as_millis()).collect();
        assert_eq!(waits, [2000, 3000, 4500, 6750, 10125, 15187, 22780]);
        assert_eq!(curve.before_retry(u32::MAX), curve.before_retry(u32::MAX - 1));
    }

    #[test]
    fn fibonacci_grows_by_its_last_two() {
        let curve = Backoff::Fibonacci { base: S };
        assert_eq!((1..=6).map(|n| curve.before_retry(n).as_secs()).collect::<Vec<_>>(), [1, 2, 3, 5, 8, 13]);
    }

    #[test]
    fn a_sum_adds_its_parts() {
        let parts = vec![Backoff::Constant { delay: S }, Backoff::Linear { base: Duration::ZERO, step: 2 * S }];
        let curve = Backoff::Sum { parts };
        assert_eq!((1..=3).map(|n| curve.before_retry(n).as_secs()).collect::<Vec<_>>(), [1, 3, 5]);
    }

    #[test]
    fn a_list_is_read_by_its_tail_rule() {
        let waits = |tail, most: u32| {
            let curve = Backoff::List { delays: vec![10 * S, 30 * S, 60 * S], tail };
            (1..=most).map(|n| curve.nanos(n, most) / 1e9).collect::<Vec<_>>()
        };
        assert_eq!(waits(Tail::First, 5), [10.0, 10.0, 10.0, 30.0, 60.0]);
        assert_eq!(waits(Tail::First, 2), [30.0, 60.0]);
        assert_eq!(waits(Tail::Last, 5), [10.0, 30.0, 60.0, 60.0, 60.0]);
    }
}
