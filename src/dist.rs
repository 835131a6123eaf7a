//! Distributions of durations, for latencies.
//!
//! Sampling is rand_distr's; this room only names the shapes, keeps their settings valid and speaks in durations.

use std::time::Duration;

use rand_distr::{Distribution, Exp1, StandardNormal};
use serde::Serialize;

use crate::rng::Draw;
use crate::time::seconds;

/// A distribution of non-negative durations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Dist {
    /// Always the same.
    Constant {
        /// The value.
        value: Duration,
    },
    /// Uniform on [min, max).
    Uniform {
        /// Lowest value.
        min: Duration,
        /// Highest value, not below `min`.
        max: Duration,
    },
    /// Exponential: memoryless service, the M of M/M/c.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Normal, cut off at zero.
    Normal {
        /// The mean before the cut.
        mean: Duration,
        /// The standard deviation before the cut.
        sd: Duration,
    },
    /// Log-normal, the usual shape of a service's latency, given by the two figures that dashboards show.
    LogNormal {
        /// Half of the values are below.
        median: Duration,
        /// 99 of 100 values are below; not below `median`.
        p99: Duration,
    },
}

/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874_040_841;

impl Dist {
    /// One value.
    pub fn sample(&self, draw: &mut Draw) -> Duration {
        match *self {
            Dist::Constant { value } => value,
            Dist::Uniform { min, max } => seconds(draw.between(min.as_secs_f64(), max.as_secs_f64())),
            Dist::Exponential { mean } => {
                let unit: f64 = Exp1.sample(draw);
                seconds(mean.as_secs_f64() * unit)
            }
            Dist::Normal { mean, sd } => {
                let unit: f64 = StandardNormal.sample(draw);
                seconds(mean.as_secs_f64() + sd.as_secs_f64() * unit)
            }
            Dist::LogNormal { median, p99 } => {
                let unit: f64 = StandardNormal.sample(draw);
                let sigma = (p99.as_secs_f64() / median.as_secs_f64()).ln() / Z99;
                seconds(median.as_secs_f64() * (sigma * unit).exp())
            }
        }
    }

    /// The mean, in closed form (of a normal: before its cut at zero).
    pub fn mean(&self) -> Duration {
        match *self {
            Dist::Constant { value } => value,
            Dist::Uniform { min, max } => seconds((min.as_secs_f64() + max.as_secs_f64()) / 2.0),
            Dist::Exponential { mean } | Dist::Normal { mean, .. } => mean,
            Dist::LogNormal { median, p99 } => {
                let sigma = (p99.as_secs_f64() / median.as_secs_f64()).ln() / Z99;
                seconds(median.as_secs_f64() * (sigma * sigma / 2.0).exp())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::rng::{Seed, Stream};

    fn samples(dist: Dist) -> Vec<f64> {
        (0..20_000).map(|job| dist.sample(&mut Seed(5).draw(Stream::Service, JobId(job), 1)).as_secs_f64()).collect()
    }

    #[test]
    fn sample_means_agree_with_the_closed_form() {
        let ms = Duration::from_millis;
        for dist in [
            Dist::Constant { value: ms(20) },
            Dist::Uniform { min: ms(10), max: ms(30) },
            Dist::Exponential { mean: ms(20) },
            Dist::Normal { mean: ms(100), sd: ms(10) },
            Dist::LogNormal { median: ms(20), p99: ms(120) },
        ] {
            let values = samples(dist);
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let sd = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            let tolerance = 4.0 * sd / n.sqrt() + 1e-9;
            assert!((mean - dist.mean().as_secs_f64()).abs() <= tolerance, "{dist:?}: {mean}");
        }
    }

    #[test]
    fn a_log_normal_has_the_percentiles_it_was_given() {
        let mut values = samples(Dist::LogNormal { median: Duration::from_millis(20), p99: Duration::from_millis(120) });
        values.sort_by(f64::total_cmp);
        let median = values[values.len() / 2];
        let p99 = values[values.len() * 99 / 100];
        assert!((0.019..0.021).contains(&median), "{median}");
        assert!((0.108..0.132).contains(&p99), "{p99}");
    }
}
