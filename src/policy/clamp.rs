//! Floor, cap and the order in which they meet jitter; and the grain of a delay.
//!
//! The order matters more than the numbers. Cap first, and jitter may exceed the cap (by half with cenkalti/backoff, twofold
//! with backon). Jitter first, and from some retry on *every* job waits exactly the cap: the herd reassembles when it is
//! largest (Symfony, Tenacity, pg-boss, awa …). Clip, and the delay is both bounded and spread.

use std::time::Duration;

use serde::Serialize;

use super::backoff::{float, scaled};

/// Where the cap stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The curve is capped, then jitter plays: a soft cap, kept spread.
    #[default]
    CapFirst,
    /// Jitter plays, then the delay is capped: a hard cap, with mass on it.
    CapLast,
    /// Both: a hard cap, with part of the mass on it (Kafka's Java client).
    CapBoth,
    /// The interval is cut to floor and cap before the draw: hard, and kept spread (Spring Framework 7).
    Clip,
}

/// The unit that delays are whole numbers of, from the least one upwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Grain {
    /// A fixed unit; zero for none.
    pub unit: Duration,
    /// A unit that grows with each retry (Faktory's thirty slots).
    pub growth: Duration,
    /// A unit that is a share of the wait (librdkafka's per cents).
    pub share: f64,
    /// What is drawn at the upper end.
    pub ends: Ends,
}

/// What rounding does to the upper end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// Rounded down: the upper end itself is never drawn.
    #[default]
    Down,
    /// Rounded down as well, but the interval is told as its source draws it, up to the end that rounding keeps out.
    Cut,
    /// Whole numbers with both ends, each as likely: half of all first retries of Celery come at once.
    Both,
}

impl Grain {
    /// Delays of any length.
    pub const NONE: Grain = Grain { unit: Duration::ZERO, growth: Duration::ZERO, share: 0.0, ends: Ends::Down };

    /// Whole numbers of a unit, rounded down.
    pub const fn of(unit: Duration) -> Grain {
        Grain { unit, ..Grain::NONE }
    }

    /// The unit in nanoseconds for a wait of `x` before retry `n`; zero for none.
    pub(super) fn nanos(&self, x: f64, n: u32) -> f64 {
        float(self.unit) + float(self.growth) * f64::from(n) + self.share * x
    }

    /// How many different delays there are between two ends.
    pub(super) fn steps(&self, low: f64, high: f64, unit: f64) -> f64 {
        let fit = (high - low) / unit;
        match self.ends {
            Ends::Down | Ends::Cut => (fit - 1e-6).ceil().max(1.0),
            Ends::Both => (fit + 1e-6).floor() + 1.0,
        }
    }

    /// The delay between two ends that a draw of `chance` in [0, 1) gives. A single possible wait is cut to the unit.
    pub(super) fn pick(&self, (low, high): (f64, f64), unit: f64, chance: f64) -> f64 {
        let finite = high.is_finite() && low.is_finite();
        if unit <= 0.0 || !finite {
            return if finite { low + chance * (high - low) } else { high };
        }
        if high <= low {
            return if self.share > 0.0 { low } else { (low / unit + 1e-6).floor() * unit };
        }
        match self.ends {
            Ends::Down | Ends::Cut => low + unit * ((high - low) * chance / unit).floor(),
            Ends::Both => low + unit * (self.steps(low, high, unit) * chance).floor(),
        }
    }

    pub(super) fn scaled(&self, factor: f64) -> Grain {
        Grain { unit: scaled(self.unit, factor), growth: scaled(self.growth, factor), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: f64 = 1e9;

    #[test]
    fn whole_seconds_with_both_ends_are_equally_likely() {
        let grain = Grain { ends: Ends::Both, ..Grain::of(Duration::from_secs(1)) };
        let picked: Vec<f64> = (0..10).map(|i| grain.pick((0.0, S), S, f64::from(i) / 10.0) / S).collect();
        assert_eq!(picked, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn rounding_down_leaves_the_upper_end_out() {
        let grain = Grain::of(Duration::from_secs(1));
        assert_eq!(grain.pick((15.0 * S, 25.0 * S), S, 0.999_999), 24.0 * S);
        assert_eq!(grain.pick((17.0 * S, 18.7 * S), S, 0.999_999), 18.0 * S, "an end between two steps");
        assert_eq!(grain.steps(17.0 * S, 18.7 * S, S), 2.0);
    }
}
