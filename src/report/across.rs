//! Runs gathered by policy, and figures across the repetitions of one.

use super::figure::{count, many, percent};
use crate::metrics::{Occurrence, Summary, Value, median_ranks, share_interval};
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

/// A figure over the repetitions of a policy. A value that does not exist is beyond all numbers: a time that never came is the longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// How many repetitions.
    pub(super) n: usize,
    /// How many of them have no value.
    pub(super) missing: usize,
    /// The median; `None` where at least half of the repetitions have no value.
    pub(super) median: Option<f64>,
    /// The least value there is.
    pub(super) least: Option<f64>,
    /// The greatest; `None` if some repetition has no value.
    pub(super) most: Option<f64>,
    /// The least value that one repetition in twenty does not exceed.
    pub(super) p5: Option<f64>,
    /// The least value that nineteen in twenty do not exceed.
    pub(super) p95: Option<f64>,
    /// Between what values the median lies, 95 times in a hundred; `None` for fewer than six repetitions.
    pub(super) interval: Option<(Option<f64>, Option<f64>)>,
}

/// In how many repetitions something happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) hits: u64,
    pub(super) of: u64,
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
        Spread::of(self.whole().map(|run| value(&run.summary).map(Value::as_f64)).collect())
    }

    /// Every value that there is, ascending.
    #[cfg_attr(not(feature = "plot"), expect(dead_code, reason = "only a chart shows each"))]
    pub(super) fn values(&self, value: impl Fn(&Summary) -> Option<Value>) -> Vec<f64> {
        let mut values: Vec<f64> = self.whole().filter_map(|run| value(&run.summary).map(Value::as_f64)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// In how many repetitions something happened, of those in which it could; `None` if it could in none.
    pub(super) fn share(&self, occurrence: &Occurrence) -> Option<Share> {
        let told: Vec<bool> = self.whole().filter_map(|run| occurrence.happened(&run.summary)).collect();
        let hits = told.iter().filter(|happened| **happened).count() as u64;
        (!told.is_empty()).then_some(Share { hits, of: told.len() as u64 })
    }

    /// The repetitions that came to their end; where none did, what there is.
    fn whole(&self) -> impl Iterator<Item = &&'a Run> {
        let some = self.runs.iter().any(|run| !run.partial);
        self.runs.iter().filter(move |run| !run.partial || !some)
    }

    /// The median of a count over all repetitions.
    pub(super) fn median(&self, value: impl Fn(&Summary) -> u64) -> f64 {
        self.spread(|summary| Some(Value::Count(value(summary)))).median.unwrap_or(0.0)
    }

    /// Whether more than one repetition was run.
    pub(super) fn is_repeated(&self) -> bool {
        self.runs.len() > 1
    }

    /// Whether jobs that could have succeeded did not, in any repetition.
    pub(super) fn loses(&self) -> bool {
        self.runs.iter().any(|run| run.summary.counts.lost() > 0)
    }
}

impl Spread {
    fn of(values: Vec<Option<f64>>) -> Spread {
        let missing = values.iter().filter(|value| value.is_none()).count();
        let mut values: Vec<f64> = values.into_iter().map(|value| value.unwrap_or(f64::INFINITY)).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let at = |place: usize| values.get(place).copied().and_then(finite);
        let by = |share: f64| at((n as f64 * share).ceil() as usize - usize::from(n > 0));
        let median = match n {
            0 => None,
            n if n % 2 == 1 => at(n / 2),
            n => finite(f64::midpoint(values[n / 2 - 1], values[n / 2])),
        };
        let interval = median_ranks(n).map(|(low, high)| (at(low), at(high)));
        Spread { n, missing, median, least: at(0), most: at(n.wrapping_sub(1)), p5: by(0.05), p95: by(0.95), interval }
    }

    /// Where the median may lie: its interval, and with too few repetitions for one the least and the greatest value.
    fn bounds(&self) -> (f64, f64) {
        let (low, high) = self.interval.unwrap_or((self.least, self.most));
        (low.unwrap_or(f64::INFINITY), high.unwrap_or(f64::INFINITY))
    }

    /// Whether two can be told apart: the bounds of their medians do not overlap.
    pub(super) fn is_apart(&self, other: &Spread) -> bool {
        let ((low, high), (other_low, other_high)) = (self.bounds(), other.bounds());
        high < other_low || other_high < low
    }
}

impl Share {
    /// The share, 0 to 1.
    pub(super) fn value(&self) -> f64 {
        self.hits as f64 / self.of.max(1) as f64
    }

    /// Between what shares the true one lies, 95 times in a hundred.
    pub(super) fn interval(&self) -> (f64, f64) {
        share_interval(self.hits, self.of)
    }

    /// In words: `in 12 of 100 repetitions (12 %; 7.0 % to 20 %)`, with an interval where there are enough for one.
    pub(super) fn text(&self) -> String {
        let of = format!("in {} of {}", count(self.hits as f64), many(self.of as f64, "repetition"));
        if median_ranks(self.of as usize).is_none() {
            return of;
        }
        let (low, high) = self.interval();
        format!("{of} ({}; {} to {})", percent(self.value()), percent(low), percent(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_ranks_beyond_all_numbers() {
        let spread = Spread::of(vec![Some(3.0), None, Some(1.0)]);
        assert_eq!((spread.median, spread.least, spread.most), (Some(3.0), Some(1.0), None));
        assert_eq!((spread.n, spread.missing, spread.interval), (3, 1, None));
        assert_eq!(Spread::of(vec![Some(3.0), None]).median, None);
        assert_eq!(Spread::of(vec![Some(3.0), Some(4.0)]).median, Some(3.5));
        let nothing = Spread::of(vec![]);
        assert_eq!((nothing.median, nothing.least, nothing.most, nothing.p5, nothing.p95), (None, None, None, None, None));
    }

    #[test]
    fn of_a_hundred_the_5th_the_40th_the_61st_and_the_95th_are_named() {
        let hundred = |plus: f64| Spread::of((1..=100).rev().map(|i| Some(f64::from(i) + plus)).collect());
        let spread = hundred(0.0);
        assert_eq!((spread.p5, spread.p95), (Some(5.0), Some(95.0)));
        assert_eq!((spread.median, spread.interval), (Some(50.5), Some((Some(40.0), Some(61.0)))));
        assert!(!spread.is_apart(&hundred(21.0)) && spread.is_apart(&hundred(22.0)) && hundred(22.0).is_apart(&spread));
        let never = Spread::of(vec![None; 10]);
        assert!(never.is_apart(&spread) && !never.is_apart(&never), "what never came is later, and is not told from itself");
    }

    #[test]
    fn few_are_told_apart_by_their_ranges() {
        let of = |values: &[f64]| Spread::of(values.iter().copied().map(Some).collect());
        assert!(of(&[1.0, 2.0]).is_apart(&of(&[3.0, 4.0])) && !of(&[1.0, 3.0]).is_apart(&of(&[2.0, 4.0])));
    }

    #[test]
    fn a_share_has_an_interval_where_there_are_enough() {
        assert_eq!(Share { hits: 1, of: 2 }.text(), "in 1 of 2 repetitions");
        assert_eq!(Share { hits: 12, of: 100 }.text(), "in 12 of 100 repetitions (12 %; 7.0 % to 20 %)");
    }
}
