//! One thing that must hold, and how it is judged.

use crate::rng::Seed;

/// How far a mean may be from where it should be, in standard errors.
const ERRORS: f64 = 4.0;
/// A standard error above this share of what is expected would let anything pass.
const BLUNT: f64 = 0.25;
/// Long batches of a series, whose means hardly depend on each other.
const BATCHES: usize = 40;

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// What all chance comes from.
    pub seed: Seed,
    /// Jobs of a run whose figures are averages over time.
    pub jobs: u64,
    /// Repetitions where each run gives one value.
    pub runs: u32,
    /// Repetitions of the contention model.
    pub races: u32,
}

impl Effort {
    /// What `simq verify` does.
    pub const FULL: Effort = Effort { seed: Seed(7), jobs: 400_000, runs: 400, races: 1000 };
    /// What `simq verify --quick` does.
    pub const QUICK: Effort = Effort { seed: Seed(7), jobs: 60_000, runs: 60, races: 100 };
    /// What tests do.
    pub const SMALL: Effort = Effort { seed: Seed(7), jobs: 6_000, runs: 8, races: 12 };

    /// Whether there are jobs enough to see one in a hundred often.
    pub(super) fn sees_tails(&self) -> bool {
        self.jobs >= 4 * Effort::QUICK.jobs
    }

    /// Whether there are jobs enough for a queue that is nearly always full: it forgets slowly.
    pub(super) fn is_long(&self) -> bool {
        self.jobs >= Effort::QUICK.jobs
    }
}

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What, with its unit.
    pub name: String,
    /// What should come out.
    pub expected: f64,
    /// What did.
    pub measured: f64,
    /// How far apart they may be.
    pub within: Within,
}

/// How far apart expected and measured may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Within {
    /// Not at all.
    Exactly,
    /// Four of these standard errors.
    Errors(f64),
    /// So much, where theory itself is no more precise.
    Of(f64),
    /// The measured must not be above the expected.
    Bound,
}

impl Check {
    pub(super) fn new(name: impl Into<String>, expected: f64, measured: f64, within: Within) -> Check {
        Check { name: name.into(), expected, measured, within }
    }

    /// What must be met exactly.
    pub(super) fn exact(name: impl Into<String>, expected: f64, measured: f64) -> Check {
        Check::new(name, expected, measured, Within::Exactly)
    }

    /// The mean of independent values.
    pub(super) fn mean(name: impl Into<String>, expected: f64, values: &[f64]) -> Check {
        let (mean, error) = mean_and_error(values);
        Check::new(name, expected, mean, Within::Errors(error))
    }

    /// The mean of values in a row that depend on each other.
    pub(super) fn of_series(name: impl Into<String>, expected: f64, values: &[f64]) -> Check {
        let size = (values.len() / BATCHES).max(1);
        let means: Vec<f64> = values.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / batch.len() as f64).collect();
        Check::mean(name, expected, &means)
    }

    /// A share of so many independent cases, with the error that theory says it has: of what is rare, a run may have seen none.
    pub(super) fn share(name: impl Into<String>, expected: f64, measured: f64, cases: u64) -> Check {
        let error = (expected * (1.0 - expected) / cases as f64).sqrt();
        Check::new(name, expected, measured, Within::Errors(error))
    }

    /// The distance in standard errors, where there is one.
    pub fn distance(&self) -> Option<f64> {
        match self.within {
            Within::Errors(error) => Some((self.measured - self.expected) / error),
            Within::Exactly | Within::Of(_) | Within::Bound => None,
        }
    }

    /// The verdict.
    pub fn holds(&self) -> bool {
        let off = (self.measured - self.expected).abs();
        match self.within {
            Within::Exactly => self.measured == self.expected,
            Within::Errors(error) => off <= ERRORS * error && error <= BLUNT * self.expected.abs(),
            Within::Of(tolerance) => off <= tolerance,
            Within::Bound => self.measured <= self.expected,
        }
    }
}

/// The mean of independent values, and its standard error.
pub(super) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (variance(values) / n).sqrt())
}

/// The unbiased variance of independent values.
pub(super) fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_may_be_four_errors_off_and_no_more() {
        let check = |measured, error| Check::new("x", 10.0, measured, Within::Errors(error));
        assert!(check(10.9, 0.25).holds() && !check(11.1, 0.25).holds());
        assert_eq!(check(11.0, 0.5).distance(), Some(2.0));
        assert!(!check(10.0, 3.0).holds(), "so large an error says nothing");
        assert!(!check(f64::NAN, 0.1).holds() && !check(10.0, f64::NAN).holds());
    }

    #[test]
    fn batches_see_that_values_depend_on_each_other() {
        let values: Vec<f64> = (0..4000).map(|n| f64::from(n / 500 % 2)).collect();
        let error = |check: Check| match check.within {
            Within::Errors(error) => error,
            _ => unreachable!("a mean has one"),
        };
        let (alone, batched) = (Check::mean("", 0.5, &values), Check::of_series("", 0.5, &values));
        assert_eq!(alone.measured, batched.measured);
        assert!(error(batched) > 5.0 * error(alone));
    }

    #[test]
    fn exact_means_exact_and_a_bound_is_one_sided() {
        assert!(Check::exact("x", 121_000.0, 121_000.0).holds() && !Check::exact("x", 121_000.0, 121_001.0).holds());
        let bound = |measured| Check::new("x", 1.1, measured, Within::Bound).holds();
        assert!(bound(0.3) && bound(1.1) && !bound(1.2));
    }
}
