//! Stampede peaks: the most calls in any window of a given length, exactly.
//!
//! A window slides over the sorted times (two pointers, linear time). Fixed bins would under-report a burst by up to half,
//! since a burst that straddles an edge is split; bins are for drawing only.

use std::time::Duration;

use serde::Serialize;

use crate::time::Instant;

/// The busiest window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Peak {
    /// Calls in it.
    pub calls: u64,
    /// Its first call.
    pub at: Instant,
}

/// The busiest half-open window `[t, t + length)` over ascending times; the earliest of equals. No calls, no peak.
pub fn busiest_window(times: &[Instant], length: Duration) -> Peak {
    assert!(times.is_sorted(), "a sliding window needs ascending times");
    let mut best = Peak::default();
    let mut first = 0;
    for (last, &time) in times.iter().enumerate() {
        while time.since(times[first]) >= length.max(Duration::from_nanos(1)) {
            first += 1;
        }
        let calls = (last - first + 1) as u64;
        if calls > best.calls {
            best = Peak { calls, at: times[first] };
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(times: &[u64]) -> Vec<Instant> {
        times.iter().map(|t| Instant::from_nanos(t * 1_000_000)).collect()
    }

    #[test]
    fn a_burst_across_a_bin_edge_is_counted_whole() {
        let times = ms(&[90, 95, 99, 101, 105, 400]);
        assert_eq!(busiest_window(&times, Duration::from_millis(100)).calls, 5);
    }

    #[test]
    fn a_window_is_half_open_and_nothing_has_no_peak() {
        assert_eq!(busiest_window(&ms(&[0, 100]), Duration::from_millis(100)).calls, 1);
        assert_eq!(busiest_window(&[], Duration::from_millis(100)), Peak::default());
    }

    proptest! {
        #[test]
        fn agrees_with_counting_from_every_call(mut times in proptest::collection::vec(0..2_000_u64, 0..200), length in 1..500_u64) {
            times.sort_unstable();
            let slow = times.iter().map(|t| times.iter().filter(|u| *u >= t && *u - t < length).count()).max().unwrap_or(0);
            let fast = busiest_window(&ms(&times), Duration::from_millis(length));
            prop_assert_eq!(fast.calls, slow as u64);
        }
    }
}
