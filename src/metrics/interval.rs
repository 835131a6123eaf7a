//! What repetitions say together: the interval of a median, and the interval of a share.
//!
//! Both ask nothing of how values are distributed, since nobody knows: peaks have long tails, and a run that never ends has no value at
//! all.
//!
//! * **Median.** Of `n` independent values in order, the median lies between the `k`-th and the `(n + 1 − k)`-th with probability
//!   `1 − 2·P(B < k)`, where `B` is binomial with `n` and one half: each value is below the median as a coin shows heads. The greatest `k`
//!   that keeps this at 95 % is taken. Fewer than six values have no such interval. Source: David and Nagaraja, "Order Statistics", 2003,
//!   §7.1.
//! * **Share.** Wilson's score interval, which is of use also where all or none of a few have it. Source: Wilson, "Probable
//!   Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927.

/// What both intervals leave out.
const LEFT_OUT: f64 = 0.05;
/// The normal distribution's quantile for it, at both sides.
const Z: f64 = 1.959_963_984_540_054;
/// Up to here the binomial distribution is summed; above, a normal one stands for it, less a rank for its error.
const SUMMED: usize = 2000;

/// The places, from 0, of the values between which the median lies, 95 times in a hundred; `None` for fewer than six values.
pub fn median_ranks(n: usize) -> Option<(usize, usize)> {
    let below = if n <= SUMMED { summed(n) } else { (n as f64 / 2.0 - Z * (n as f64).sqrt() / 2.0).floor() as usize - 1 };
    Some((below.checked_sub(1)?, n - below))
}

/// The greatest `k` with `P(B < k)` at most half of what is left out.
fn summed(n: usize) -> usize {
    let mut ln_of_one = -(n as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for k in 0..n {
        sum += ln_of_one.exp();
        if sum > LEFT_OUT / 2.0 {
            return k;
        }
        ln_of_one += ((n - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    0
}

/// Between what shares, 0 to 1, the true one lies if `hits` of `of` have it, 95 times in a hundred. Nothing is known of none.
pub fn share_interval(hits: u64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (of as f64, hits as f64 / of as f64);
    let (scale, middle) = (1.0 + Z * Z / n, share + Z * Z / (2.0 * n));
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let low = if hits == 0 { 0.0 } else { (middle - half) / scale };
    let high = if hits == of { 1.0 } else { (middle + half) / scale };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::rng::{Seed, Stream};

    #[test]
    fn the_ranks_are_those_of_the_published_table() {
        // From 1: 6 gives the 1st and the 6th, 20 the 6th and the 15th, 100 the 40th and the 61st.
        let from_one = |n| median_ranks(n).map(|(low, high)| (low + 1, high + 1));
        assert_eq!((0..6).filter_map(median_ranks).count(), 0);
        assert_eq!([6, 9, 20, 100].map(from_one), [Some((1, 6)), Some((2, 8)), Some((6, 15)), Some((40, 61))]);
    }

    #[test]
    fn the_ranks_of_many_go_on_where_the_sum_ends() {
        for n in SUMMED + 1..SUMMED + 50 {
            let (quick, exact) = (median_ranks(n).expect("there are many").0 + 1, summed(n));
            assert!(quick <= exact && quick + 2 >= exact, "{n}: {quick}, {exact}");
        }
        let (low, high) = median_ranks(1_000_000).expect("there are many");
        assert_eq!((low, high), (499_018, 500_981));
    }

    /// By trying: it must hold its promise, and not by being endless.
    #[test]
    fn an_interval_of_the_median_holds_it_in_95_of_a_hundred() {
        const TRIES: u64 = 1500;
        for n in [6_u32, 15, 40] {
            let (low, high) = median_ranks(n as usize).expect("there are enough");
            let holds = |seed: &u64| {
                let unit = |i| Seed(*seed).draw(Stream::Jitter, JobId(i), n).unit();
                let mut values: Vec<f64> = (0..u64::from(n)).map(unit).collect();
                values.sort_by(f64::total_cmp);
                (values[low]..=values[high]).contains(&0.5)
            };
            let held = (0..TRIES).filter(holds).count() as f64 / TRIES as f64;
            // Four standard errors of 0.95 in 1500 are 0.0225.
            assert!((0.927..0.99).contains(&held), "{n} values: {held}");
        }
    }

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        let rounded = |hits, of| {
            let (low, high) = share_interval(hits, of);
            ((low * 1e4).round() / 1e4, (high * 1e4).round() / 1e4)
        };
        assert_eq!([rounded(0, 10), rounded(10, 10)], [(0.0, 0.2775), (0.7225, 1.0)]);
        assert_eq!([rounded(1, 10), rounded(50, 100)], [(0.0179, 0.4042), (0.4038, 0.5962)]);
        assert_eq!(rounded(0, 0), (0.0, 1.0));
    }
}
