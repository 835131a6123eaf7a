//! When a fault strikes, and how hard: its window, its repetitions and its ramps.
//!
//! ```text
//!  1 ┤      ┌────────┐              ┌──
//!    │     ╱          ╲            ╱
//!  0 ┼────┴────────────┴──────────┴─────
//!        at         at + lasts   at + every
//! ```

use std::time::Duration;

use super::Outage;
use crate::time::{Instant, Window, nanos};

/// The most repetitions that are written out; a chart shows no more.
const MOST: u64 = 10_000;

impl Outage {
    /// The turn of the fault that `at` lies in.
    pub fn turn(&self, at: Instant) -> Option<Window> {
        if at < self.window.from {
            return None;
        }
        let passed = nanos(at.since(self.window.from));
        let turns = self.every.map_or(0, |every| passed / nanos(every).max(1));
        self.nth(turns).filter(|turn| turn.contains(at))
    }

    /// Every turn that begins before `end`, cut off there; ten thousand at most.
    pub fn turns(&self, end: Instant) -> impl Iterator<Item = Window> {
        let turns = (0..MOST).map_while(|n| self.nth(n));
        turns.take_while(move |turn| turn.from < end).map(move |turn| Window { until: turn.until.min(end), ..turn })
    }

    fn nth(&self, n: u64) -> Option<Window> {
        match self.every {
            None => (n == 0).then_some(self.window),
            Some(every) => {
                let from = self.window.from + Duration::from_nanos(nanos(every).saturating_mul(n));
                Some(Window { from, until: from + self.window.length() })
            }
        }
    }

    /// How hard it strikes at an instant of `turn`, 0 to 1: the lower of its two ramps.
    pub(super) fn intensity(&self, turn: &Window, at: Instant) -> f64 {
        let ramp = |passed: Duration, ramp: Duration| {
            if ramp.is_zero() { 1.0 } else { (passed.as_secs_f64() / ramp.as_secs_f64()).min(1.0) }
        };
        ramp(at.since(turn.from), self.ramp_in).min(ramp(turn.until.since(at), self.ramp_out))
    }

    /// When after `at` it next begins or ends; `None` if never.
    pub fn next_edge(&self, at: Instant) -> Option<Instant> {
        if let Some(turn) = self.turn(at) {
            return Some(turn.until);
        }
        if at < self.window.from {
            return Some(self.window.from);
        }
        let every = nanos(self.every?).max(1);
        let turns = nanos(at.since(self.window.from)) / every;
        self.nth(turns + 1).map(|turn| turn.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::Mode;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn outage() -> Outage {
        Outage::plain(Window { from: at(100), until: at(140) }, Mode::Hang)
    }

    #[test]
    fn a_repeating_window_comes_again_and_knows_its_edges() {
        let outage = Outage { every: Some(Duration::from_millis(100)), ..outage() };
        let down: Vec<u64> = (0..400).filter(|ms| outage.turn(at(*ms)).is_some()).collect();
        assert_eq!(down, (100..140).chain(200..240).chain(300..340).collect::<Vec<_>>());
        let edges = [0, 100, 139, 140, 250].map(|ms| outage.next_edge(at(ms)));
        assert_eq!(edges, [at(100), at(140), at(140), at(200), at(300)].map(Some));
        let turns: Vec<Window> = outage.turns(at(220)).collect();
        assert_eq!((turns.len(), turns[1]), (2, Window { from: at(200), until: at(220) }));
    }

    #[test]
    fn a_single_window_ends_for_ever() {
        assert_eq!(outage().next_edge(at(140)), None);
        assert_eq!(outage().turns(Instant::FAR).count(), 1);
    }

    #[test]
    fn ramps_rise_and_fall_within_the_window() {
        let outage = Outage { ramp_in: Duration::from_millis(20), ramp_out: Duration::from_millis(10), ..outage() };
        let turn = outage.turn(at(100)).expect("it has begun");
        let intensity = [100, 110, 120, 130, 135].map(|ms| (outage.intensity(&turn, at(ms)) * 100.0).round());
        assert_eq!(intensity, [0.0, 50.0, 100.0, 100.0, 50.0]);
    }
}
