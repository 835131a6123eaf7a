//! Rate control: how fast a client calls at all, retries or not.
//!
//! The adaptive kind is AWS's: nothing is held until the downstream first throttles; then the rate is cut to 0.7 of what was
//! measured and grows back along a cubic, slowly near the rate that failed and fast beyond it.
//!
//! ```text
//! cut:    rate = 0.7 · min(measured, rate), W = ∛(0.3 · last rate / 0.4)
//! grow:   rate = 0.4 · (t − W)³ + last rate,  t since the cut, in seconds; never above twice the measured rate, nor below 0.5/s
//! ```
//! Source: botocore, `retries/adaptive.py`, `throttling.py`, `bucket.py`; the curve is Ha, Rhee and Xu's CUBIC, 2008.

use std::time::Duration;

use serde::Serialize;

use super::backoff::scaled;
use super::guard::Scope;
use crate::time::{Instant, nanos};

/// A rate control and who shares it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Its rule.
    pub rule: RateRule,
    /// Who shares it.
    pub scope: Scope,
}

/// The rule of a rate control.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "kebab-case")]
pub enum RateRule {
    /// Calls wait for their turn.
    Fixed {
        /// Calls per second.
        rate: f64,
        /// Calls at once after a quiet time, at least 1.
        burst: u32,
    },
    /// AWS's.
    Adaptive {
        /// What it takes for a second; a scaled time is another.
        second: Duration,
    },
}

const CUT: f64 = 0.7;
const GROWTH: f64 = 0.4;
const SMOOTH: f64 = 0.8;
const LEAST: f64 = 0.5;

/// How a rate control stands. Times are in its own seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    next: u64,
    enabled: bool,
    rate: f64,
    capacity: f64,
    tokens: f64,
    filled: f64,
    measured: f64,
    bucket: f64,
    calls: f64,
    last_rate: f64,
    last_cut: f64,
}

impl Pace {
    /// Lets a call through, or says when to ask again.
    pub(super) fn admit(&mut self, rule: &RateRule, now: Instant) -> Result<(), Instant> {
        match *rule {
            RateRule::Fixed { rate, burst } => {
                let each = (1e9 / rate) as u64;
                let early = each.saturating_mul(u64::from(burst.saturating_sub(1)));
                let turn = self.next.saturating_sub(early);
                if turn > now.as_nanos() {
                    return Err(Instant::from_nanos(turn));
                }
                self.next = self.next.max(now.as_nanos()).saturating_add(each);
                Ok(())
            }
            RateRule::Adaptive { second } => {
                if !self.enabled {
                    return Ok(());
                }
                self.fill(own(now, second));
                if self.tokens >= 1.0 {
                    self.tokens -= 1.0;
                    return Ok(());
                }
                let wait = scaled(second, (1.0 - self.tokens) / self.rate);
                Err(now + wait.max(Duration::from_micros(100)))
            }
        }
    }

    /// Takes note of how a call ended.
    pub(super) fn note(&mut self, rule: &RateRule, now: Instant, throttled: bool) {
        let RateRule::Adaptive { second } = *rule else { return };
        let now = own(now, second);
        self.measure(now);
        let wanted = if throttled {
            self.last_rate = if self.enabled { self.measured.min(self.rate) } else { self.measured };
            self.last_cut = now;
            self.enabled = true;
            self.last_rate * CUT
        } else {
            let window = (self.last_rate * (1.0 - CUT) / GROWTH).cbrt();
            GROWTH * (now - self.last_cut - window).powi(3) + self.last_rate
        };
        self.fill(now);
        self.rate = wanted.min(2.0 * self.measured).max(LEAST);
        self.capacity = self.rate.max(1.0);
        self.tokens = self.tokens.min(self.capacity);
    }

    /// Calls per second of its own time, or none while it holds nothing.
    pub(super) fn rate(&self) -> Option<f64> {
        self.enabled.then_some(self.rate)
    }

    fn fill(&mut self, now: f64) {
        self.tokens = (self.tokens + (now - self.filled).max(0.0) * self.rate).min(self.capacity);
        self.filled = self.filled.max(now);
    }

    /// Smoothes the rate over half seconds.
    fn measure(&mut self, now: f64) {
        let bucket = (now * 2.0).floor() / 2.0;
        self.calls += 1.0;
        if bucket > self.bucket {
            let rate = self.calls / (bucket - self.bucket);
            self.measured = rate * SMOOTH + self.measured * (1.0 - SMOOTH);
            (self.calls, self.bucket) = (0.0, bucket);
        }
    }
}

fn own(now: Instant, second: Duration) -> f64 {
    now.as_nanos() as f64 / nanos(second).max(1) as f64
}

impl Rate {
    pub(super) fn scaled(&self, factor: f64) -> Rate {
        let rule = match self.rule {
            RateRule::Fixed { rate, burst } => RateRule::Fixed { rate: rate / factor, burst },
            RateRule::Adaptive { second } => RateRule::Adaptive { second: scaled(second, factor) },
        };
        Rate { rule, scope: self.scope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADAPTIVE: RateRule = RateRule::Adaptive { second: Duration::from_secs(1) };

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_fixed_rate_spaces_calls_after_its_burst() {
        let rule = RateRule::Fixed { rate: 10.0, burst: 2 };
        let mut pace = Pace::default();
        assert!(pace.admit(&rule, at(1000)).is_ok() && pace.admit(&rule, at(1000)).is_ok());
        assert_eq!(pace.admit(&rule, at(1000)), Err(at(1100)));
        assert!(pace.admit(&rule, at(1100)).is_ok());
    }

    #[test]
    fn nothing_is_held_until_the_first_throttle_and_then_the_rate_is_cut() {
        let mut pace = Pace::default();
        for call in 0..500 {
            assert!(pace.admit(&ADAPTIVE, at(call * 10)).is_ok());
            pace.note(&ADAPTIVE, at(call * 10), false);
        }
        pace.note(&ADAPTIVE, at(5000), true);
        let rate = pace.rate().expect("armed");
        assert!((rate - 70.0).abs() < 3.0, "0.7 of a hundred a second, not {rate}");
    }

    /// T-53, T-55: the rate grows back after successes, and never above twice what was measured.
    #[test]
    fn t53_the_rate_recovers_along_the_cubic() {
        let mut pace = Pace::default();
        for call in 0..500 {
            pace.note(&ADAPTIVE, at(call * 10), false);
        }
        pace.note(&ADAPTIVE, at(5000), true);
        let mut rates = Vec::new();
        let mut now = 5000;
        for _ in 0..600 {
            now += 14;
            if pace.admit(&ADAPTIVE, at(now)).is_ok() {
                pace.note(&ADAPTIVE, at(now), false);
            }
            rates.push(pace.rate().expect("armed"));
        }
        let last = *rates.last().expect("some");
        assert!(last > 95.0, "back where it was after 8 s, not {last}");
        assert!(last <= 2.0 * pace.measured + 1e-9);
        assert!(rates.iter().all(|rate| *rate >= LEAST));
    }
}
