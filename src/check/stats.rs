//! The statistics of small, skewed samples: medians, ranks, resamples. No distribution is assumed.
//!
//! Two samples of a figure are held against each other by the Mann-Whitney U test. Up to 400 pairs its p-value is exact, ties included:
//! the number of ways to pick the ranks of one sample from all of them, by their sum. `statrs` (0.19) gives 1 for two samples that do not
//! overlap at all where the first is not the larger, and takes no ties, so its normal approximation alone is used, for larger samples.
//!
//! Sources: Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other", 1947; Holm, "A
//! simple sequentially rejective multiple test procedure", 1979; Efron, "Bootstrap methods", 1979.

use statrs::stats_tests::Alternative;
use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};

use crate::job::JobId;
use crate::rng::{Seed, Stream};

/// Most pairs of values for which all arrangements are counted.
const EXACT: usize = 400;

/// How often a sample is resampled.
const RESAMPLES: u32 = 1_000;

/// The middle value, or the mean of the two in the middle; an infinite value ranks last. Zero for no value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// How likely two samples of one and the same distribution are to lie at least as far apart as these, by the order of their values:
/// two-sided. One for an empty sample.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    if a.len() * b.len() <= EXACT {
        return exact(a, b);
    }
    let p = mannwhitneyu(a, b, MannWhitneyUMethod::AsymptoticInclContinuityCorrection, Alternative::TwoSided);
    // Of values that are all alike the variance is zero.
    p.map_or(1.0, |(_, p)| if p.is_finite() { p } else { 1.0 })
}

/// The share of all ways to pick `a.len()` ranks of the pooled values whose sum is as far from its mean as that of `a`.
fn exact(a: &[f64], b: &[f64]) -> f64 {
    let mut pooled: Vec<(f64, bool)> =
        a.iter().map(|value| (*value, true)).chain(b.iter().map(|value| (*value, false))).collect();
    pooled.sort_by(|x, y| x.0.total_cmp(&y.0));
    // Twice the rank, so that the mean rank of ties is a whole number.
    let mut ranks: Vec<usize> = Vec::with_capacity(pooled.len());
    for tied in pooled.chunk_by(|x, y| x.0 == y.0) {
        let first = ranks.len() + 1;
        ranks.extend(std::iter::repeat_n(2 * first + tied.len() - 1, tied.len()));
    }
    let observed: usize = ranks.iter().zip(&pooled).filter(|(_, (_, ours))| *ours).map(|(rank, _)| rank).sum();
    let most: usize = ranks.iter().sum();
    // ways[k][s]: in how many ways k of the ranks seen so far add up to s.
    let mut ways = vec![vec![0.0_f64; most + 1]; a.len() + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for k in (1..=a.len()).rev() {
            let (fewer, more) = ways.split_at_mut(k);
            for sum in rank..=most {
                more[0][sum] += fewer[k - 1][sum - rank];
            }
        }
    }
    let mean = a.len() * (pooled.len() + 1);
    let extreme = |sum: usize| sum.abs_diff(mean) >= observed.abs_diff(mean);
    let (mut all, mut far) = (0.0, 0.0);
    for (sum, ways) in ways[a.len()].iter().enumerate() {
        all += ways;
        far += if extreme(sum) { *ways } else { 0.0 };
    }
    far / all
}

/// The least p-value that samples of these sizes can have: when they do not overlap at all.
pub fn smallest_p(a: usize, b: usize) -> f64 {
    let picks = (1..=b).fold(1.0, |ways, i| ways * (a + i) as f64 / i as f64);
    (2.0 / picks).min(1.0)
}

/// Holm's correction: each p-value as it would be if it alone had been asked for, so that the chance of *any* false alarm among them stays
/// below the level that they are held against.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((p[index] * (p.len() - rank) as f64).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

/// How many times the median of `old` that of `new` is. Of two that are alike, also both zero or both infinite, it is 1.
pub fn ratio(new: f64, old: f64) -> f64 {
    if new == old { 1.0 } else { new / old }
}

/// A confidence interval for the ratio of the medians, by resampling both samples; of this level, such as 0.95. Repeatable: `seed` decides.
pub fn bootstrap(new: &[f64], old: &[f64], level: f64, seed: Seed) -> (f64, f64) {
    let [new, old] = [new, old].map(|sample| {
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    });
    let mut state = (seed.draw(Stream::Resample, JobId(0), 1).unit() * (1_u64 << 53) as f64) as u64;
    let mut picked = Vec::new();
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let resampled = resampled_median(&new, &mut picked, &mut state);
            ratio(resampled, resampled_median(&old, &mut picked, &mut state))
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[(((ratios.len() - 1) as f64) * share).round() as usize];
    (at((1.0 - level) / 2.0), at(f64::midpoint(1.0, level)))
}

/// The median of as many values as there are, picked with repetition from ascending ones. Counting the picks of each spares the sorting.
fn resampled_median(sorted: &[f64], picked: &mut Vec<u32>, state: &mut u64) -> f64 {
    picked.clear();
    picked.resize(sorted.len(), 0);
    for _ in sorted {
        picked[(splitmix(state) % sorted.len() as u64) as usize] += 1;
    }
    let rank = |rank: usize| {
        let mut seen = 0;
        let at = picked.iter().position(|count| {
            seen += *count as usize;
            seen > rank
        });
        sorted[at.unwrap_or(sorted.len() - 1)]
    };
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { rank(half) } else { f64::midpoint(rank(half - 1), rank(half)) }
}

/// The next of a sequence of well-mixed numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): a resample needs many,
/// and none of them decides what happens in a run.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn p_values_are_those_of_the_tables() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0];
        let high = [6.0, 7.0, 8.0, 9.0, 10.0];
        assert!(near(mann_whitney(&low, &high), 2.0 / 252.0));
        assert!(near(mann_whitney(&high, &low), 2.0 / 252.0));
        // R's `wilcox.test`: males and females of the example in SciPy's manual, U = 17 of 20, p = 0.1111.
        let p = mann_whitney(&[19.0, 22.0, 16.0, 29.0, 24.0], &[20.0, 11.0, 17.0, 12.0]);
        assert!((p - 0.111_111).abs() < 1e-5, "{p}");
        assert_eq!(mann_whitney(&[1.0; 5], &[1.0; 5]), 1.0);
        assert_eq!([3, 4, 5].map(|n| (smallest_p(n, n) * 1e3).round()), [100.0, 29.0, 8.0]);
    }

    #[test]
    fn an_infinite_value_ranks_last() {
        let never = [f64::INFINITY; 5];
        assert!(near(mann_whitney(&[1.0, 2.0, 3.0, 4.0, 5.0], &never), 2.0 / 252.0));
        assert_eq!(bootstrap(&never, &[1.0; 5], 0.95, Seed(1)), (f64::INFINITY, f64::INFINITY));
        assert_eq!(bootstrap(&never, &never, 0.95, Seed(1)), (1.0, 1.0));
    }

    #[test]
    fn holm_is_the_textbook_example() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| near(*a, b)), "{adjusted:?}");
    }

    proptest! {
        #[test]
        fn exact_and_approximate_p_values_agree_where_both_are_known(
            a in proptest::collection::vec(0_u32..40, 15..20), b in proptest::collection::vec(0_u32..40, 15..20),
        ) {
            let [a, b] = [a, b].map(|sample| sample.into_iter().map(f64::from).collect::<Vec<f64>>());
            let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
            let approximate = mannwhitneyu(&a, &b, method, Alternative::TwoSided).expect("numbers compare").1;
            prop_assert!((exact(&a, &b) - approximate).abs() < 0.03, "{} and {approximate}", exact(&a, &b));
        }

        #[test]
        fn the_interval_holds_the_ratio_of_the_medians(
            a in proptest::collection::vec(1.0..2.0_f64, 5..12), b in proptest::collection::vec(1.0..2.0_f64, 5..12),
        ) {
            let (low, high) = bootstrap(&a, &b, 0.95, Seed(1));
            let ratio = median(&a) / median(&b);
            prop_assert!(low <= ratio + 1e-12 && ratio <= high + 1e-12, "{low} {ratio} {high}");
        }
    }
}
