//! Collapse: a service whose capacity falls as its load grows, or that falls over and takes time to come back.
//!
//! Three loops that keep a service down when the cause is gone, each decided on arrival from the load of that moment:
//!
//! ```text
//!  slower    a call takes 1 + per_call × (calls in the house − knee) times as long, at most `most` times
//!  errors    turning calls away takes server time: with r turned away per second a share r × error_cost / servers is gone,
//!            at most nine tenths, and what is left does the work
//!  falls     at `falls_at` calls in the house it falls over: what it has it finishes, everybody else is answered 503 for
//!            `back_after`
//! ```
//! The first is Brooker's `simple_collapse_sim` (1.0 s + 0.01 s per call in flight). The rate r is an exponential average
//! over one second.

use std::time::Duration;

use serde::Serialize;

use crate::time::Instant;

/// How it collapses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Collapse {
    /// Calls in the house, worked on or waiting, from which each one more makes it slower.
    pub knee: u32,
    /// How much slower each makes it, as a share of the service time.
    pub per_call: f64,
    /// The most that it is slower by, at least 1.
    pub most: f64,
    /// Server time that turning a call away takes.
    pub error_cost: Duration,
    /// Calls in the house at which it falls over; `None`: never.
    pub falls_at: Option<u32>,
    /// How long it is down then.
    pub back_after: Duration,
}

/// Over what time turned-away calls are averaged, in seconds.
const MEMORY: f64 = 1.0;
/// The most of the servers' time that errors take.
const MOST_ERRORS: f64 = 0.9;

/// What the load has done so far.
#[derive(Debug, Default)]
pub(super) struct Strain {
    down_until: Instant,
    /// Calls turned away per second, as of `at`.
    turned_away: f64,
    at: Instant,
}

impl Strain {
    /// Whether it is down, or falls over now.
    pub(super) fn is_down(&mut self, now: Instant, in_house: usize, collapse: &Collapse) -> bool {
        if now >= self.down_until && collapse.falls_at.is_some_and(|most| in_house >= most as usize) {
            self.down_until = now + collapse.back_after;
        }
        now < self.down_until
    }

    /// Counts a call that was turned away.
    pub(super) fn turn_away(&mut self, now: Instant) {
        self.turned_away = self.rate(now) + 1.0 / MEMORY;
        self.at = now.max(self.at);
    }

    /// The factor on the service time of a call that arrives `now`.
    pub(super) fn slower(&self, now: Instant, in_house: usize, servers: u32, collapse: &Collapse) -> f64 {
        let beyond = in_house.saturating_sub(collapse.knee as usize) as f64;
        let crowd = (1.0 + collapse.per_call * beyond).min(collapse.most);
        let errors = self.rate(now) * collapse.error_cost.as_secs_f64() / f64::from(servers);
        crowd / (1.0 - errors.min(MOST_ERRORS))
    }

    fn rate(&self, now: Instant) -> f64 {
        self.turned_away * (-now.since(self.at).as_secs_f64() / MEMORY).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLLAPSE: Collapse = Collapse {
        knee: 10,
        per_call: 0.1,
        most: 5.0,
        error_cost: Duration::from_millis(20),
        falls_at: Some(100),
        back_after: Duration::from_secs(3),
    };

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_crowd_makes_it_slower_within_bounds() {
        let slower = |in_house| Strain::default().slower(at(0), in_house, 4, &COLLAPSE);
        assert_eq!([0, 10, 20, 60, 1_000].map(slower), [1.0, 1.0, 2.0, 5.0, 5.0]);
    }

    #[test]
    fn errors_take_their_time_and_are_forgotten() {
        let mut strain = Strain::default();
        (0..2_000).for_each(|ms| {
            if ms % 10 == 0 {
                strain.turn_away(at(ms))
            }
        });
        let slower = strain.slower(at(2_000), 0, 4, &COLLAPSE);
        assert!((1.6..2.1).contains(&slower), "100 errors a second take 2 of 4 servers, nearly: {slower}");
        assert!(strain.slower(at(20_000), 0, 4, &COLLAPSE) < 1.001);
        (2_000..4_000).for_each(|ms| strain.turn_away(at(ms)));
        assert!((strain.slower(at(4_000), 0, 4, &COLLAPSE) - 10.0).abs() < 1e-6, "never all of them");
    }

    #[test]
    fn it_falls_over_and_comes_back() {
        let mut strain = Strain::default();
        assert!(!strain.is_down(at(0), 99, &COLLAPSE));
        assert!(strain.is_down(at(10), 100, &COLLAPSE));
        assert!(strain.is_down(at(3_009), 0, &COLLAPSE));
        assert!(!strain.is_down(at(3_010), 0, &COLLAPSE));
    }
}
