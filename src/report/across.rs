//! Runs gathered by policy, and figures across the repetitions of one.

use crate::metrics::{Summary, Value};
use crate::report::{Comparison, Run};

/// The runs of one policy, at least one.
#[derive(Clone, Debug)]
pub(super) struct Runs<'a> {
    /// The policy's name.
    pub(super) policy: &'a str,
    /// Its place among the scenario's policies: decides its colour, also when only some policies were run.
    #[cfg_attr(not(feature = "plot"), expect(dead_code, reason = "only charts have colours"))]
    pub(super) index: usize,
    /// Its runs, by repetition.
    pub(super) runs: Vec<&'a Run>,
}

/// A figure over the repetitions of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// The median; `None` where at least half of the repetitions have no value.
    pub(super) median: Option<f64>,
    /// The least value there is.
    pub(super) least: Option<f64>,
    /// The greatest; `None` if some repetition has no value, since none is beyond all numbers.
    pub(super) most: Option<f64>,
}

/// The runs of every policy that was run, in the scenario's order; policies the scenario does not name come last.
pub(super) fn policies(comparison: &Comparison) -> Vec<Runs<'_>> {
    let mut all: Vec<Runs<'_>> = comparison
        .scenario
        .policies
        .iter()
        .enumerate()
        .map(|(index, named)| Runs { policy: &named.name, index, runs: Vec::new() })
        .collect();
    for run in &comparison.runs {
        match all.iter_mut().find(|runs| runs.policy == run.policy) {
            Some(runs) => runs.runs.push(run),
            None => all.push(Runs { policy: &run.policy, index: all.len(), runs: vec![run] }),
        }
    }
    all.retain(|runs| !runs.runs.is_empty());
    for runs in &mut all {
        runs.runs.sort_by_key(|run| run.repetition);
    }
    all
}

impl<'a> Runs<'a> {
    /// The first repetition: the one that charts over time show.
    pub(super) fn first(&self) -> &'a Run {
        self.runs[0]
    }

    /// A figure over all repetitions.
    pub(super) fn spread(&self, value: impl Fn(&Summary) -> Option<Value>) -> Spread {
        Spread::of(self.runs.iter().map(|run| value(&run.summary).map(Value::as_f64)).collect())
    }

    /// The median of a count over all repetitions.
    pub(super) fn median(&self, value: impl Fn(&Summary) -> u64) -> f64 {
        self.spread(|summary| Some(Value::Count(value(summary)))).median.unwrap_or(0.0)
    }

    /// Whether jobs that could have succeeded did not, in any repetition.
    pub(super) fn loses(&self) -> bool {
        self.runs.iter().any(|run| run.summary.counts.lost() > 0)
    }
}

impl Spread {
    /// Orders the values with the missing ones last, as if they were infinite: a time that never came is the longest.
    fn of(values: Vec<Option<f64>>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().map(|value| value.unwrap_or(f64::INFINITY)).collect();
        values.sort_by(f64::total_cmp);
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let middle = |values: &[f64]| match values.len() {
            0 => None,
            n if n % 2 == 1 => finite(values[n / 2]),
            n => finite(f64::midpoint(values[n / 2 - 1], values[n / 2])),
        };
        Spread {
            median: middle(&values),
            least: values.first().copied().and_then(finite),
            most: values.last().copied().and_then(finite),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_ranks_beyond_all_numbers() {
        let spread = Spread::of(vec![Some(3.0), None, Some(1.0)]);
        assert_eq!(spread, Spread { median: Some(3.0), least: Some(1.0), most: None });
        assert_eq!(Spread::of(vec![Some(3.0), None]).median, None);
        assert_eq!(Spread::of(vec![Some(3.0), Some(4.0)]).median, Some(3.5));
        assert_eq!(Spread::of(vec![]), Spread { median: None, least: None, most: None });
    }
}
