//! Chance on top of the curve, so that jobs which failed together do not come back together.

use std::time::Duration;

use serde::Serialize;

use crate::rng::Draw;
use crate::time::{nanos, seconds};

/// How a wait is randomised. `backoff` below is the curve's value for this retry after its cap.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Jitter {
    /// The wait itself: jobs that failed together come back together.
    None,
    /// Full jitter: a delay drawn uniformly from `[0, backoff)`.
    ///
    /// The mean delay is half of `backoff` and the first retry may come at once. Spreads a herd best per unit of delay.
    ///
    /// Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    Full,
    /// Equal jitter: half of `backoff`, and a draw from `[0, backoff / 2)` on top. Keeps some distance in every case.
    ///
    /// Source: as for [`Jitter::Full`].
    Equal,
    /// Proportional jitter: drawn uniformly from `[backoff · (1 − share), backoff · (1 + share))`.
    Proportional {
        /// Half the relative width, 0 to 1: 0.1 is ±10 %.
        share: f64,
    },
    /// Additive jitter: `backoff` and a draw from `[0, spread)` on top. Its effect fades as the curve grows.
    Additive {
        /// The width.
        spread: Duration,
    },
    /// Decorrelated jitter: `min(cap, U[base, 3 · last))`, where `last` is the delay before this attempt, `base` at first.
    /// Grows by the draws themselves, so the curve's factor plays no part.
    ///
    /// Source: as for [`Jitter::Full`], its `Decorr`.
    Decorrelated,
}

impl Jitter {
    /// The delay for a wait of `backoff`.
    pub(super) fn apply(
        &self,
        backoff: Duration,
        last: Option<Duration>,
        base: Duration,
        cap: Option<Duration>,
        draw: &mut Draw,
    ) -> Duration {
        match *self {
            Jitter::None => backoff,
            Jitter::Full => scaled(backoff, draw.unit()),
            Jitter::Equal => scaled(backoff, 0.5 + 0.5 * draw.unit()),
            Jitter::Proportional { share } => scaled(backoff, draw.between(1.0 - share, 1.0 + share)),
            Jitter::Additive { spread } => backoff.saturating_add(scaled(spread, draw.unit())),
            Jitter::Decorrelated => {
                let high = last.unwrap_or(base).max(base).as_secs_f64() * 3.0;
                let drawn = seconds(draw.between(base.as_secs_f64(), high));
                cap.map_or(drawn, |cap| drawn.min(cap))
            }
        }
    }

    /// The longest delay that can come of `backoff`.
    pub(super) fn longest(&self, backoff: Duration, cap: Option<Duration>) -> Duration {
        match *self {
            Jitter::None | Jitter::Full | Jitter::Equal => backoff,
            Jitter::Proportional { share } => scaled(backoff, 1.0 + share),
            Jitter::Additive { spread } => backoff.saturating_add(spread),
            Jitter::Decorrelated => cap.unwrap_or(Duration::MAX),
        }
    }
}

/// `duration · factor`, in nanoseconds, saturating.
fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::from_nanos((nanos(duration) as f64 * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::rng::{Seed, Stream};

    fn delays(jitter: &Jitter, backoff: Duration) -> Vec<f64> {
        (0..10_000)
            .map(|job| jitter.apply(backoff, None, backoff, None, &mut Seed(3).draw(Stream::Jitter, JobId(job), 1)).as_secs_f64())
            .collect()
    }

    /// Every sample inside, and samples within 2 % of both ends: a jitter that never jitters passes the first check alone.
    #[test]
    fn delays_fill_their_interval_and_nothing_else() {
        let second = Duration::from_secs(1);
        for (jitter, low, high) in [
            (Jitter::Full, 0.0, 1.0),
            (Jitter::Equal, 0.5, 1.0),
            (Jitter::Proportional { share: 0.25 }, 0.75, 1.25),
            (Jitter::Additive { spread: Duration::from_secs(2) }, 1.0, 3.0),
            (Jitter::Decorrelated, 1.0, 3.0),
        ] {
            let values = delays(&jitter, second);
            let least = values.iter().copied().fold(f64::MAX, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            let slack = (high - low) * 0.02;
            assert!(least >= low && least < low + slack, "{jitter:?}: least {least}");
            assert!(most < high && most > high - slack, "{jitter:?}: most {most}");
        }
    }

    #[test]
    fn full_jitter_has_the_mean_and_spread_of_a_uniform() {
        let values = delays(&Jitter::Full, Duration::from_secs(1));
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let var = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 0.5).abs() < 0.012, "{mean}");
        assert!((var - 1.0 / 12.0).abs() < 0.003, "{var}");
    }

    #[test]
    fn decorrelated_grows_from_the_last_delay_and_stays_under_the_cap() {
        let base = Duration::from_millis(100);
        let cap = Duration::from_secs(1);
        let mut longest = Duration::ZERO;
        for job in 0..1000 {
            let mut draw = Seed(3).draw(Stream::Jitter, JobId(job), 4);
            let delay = Jitter::Decorrelated.apply(base, Some(Duration::from_millis(800)), base, Some(cap), &mut draw);
            assert!(delay >= base && delay <= cap);
            longest = longest.max(delay);
        }
        assert_eq!(longest, cap, "draws above the cap are cut to it");
    }
}
