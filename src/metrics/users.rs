//! What ordinary users of the same downstream saw: what a stampede really costs.
//!
//! Figures are told apart by when a call was to be made: before the first outage, during one, and after (between two counts
//! as after).

use serde::Serialize;

use super::{Percentiles, UserCall, histogram, record};
use crate::time::Window;

/// The figures of ordinary users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UserFigures {
    /// All of their calls.
    pub all: UserPhase,
    /// Those before the first outage.
    pub before: UserPhase,
    /// Those in an outage.
    pub during: UserPhase,
    /// Those after one.
    pub after: UserPhase,
}

/// The calls of one phase that had ended when the run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UserPhase {
    /// How many.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// From when a call was to be made to its answer, or to when the user gave up.
    pub latency: Percentiles,
}

impl UserPhase {
    /// The share that failed; `None` without calls.
    pub fn failed_share(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.failed as f64 / self.calls as f64)
    }

    fn of<'a>(calls: impl Iterator<Item = &'a UserCall>) -> UserPhase {
        let mut latency = histogram();
        let (mut count, mut failed) = (0, 0);
        for call in calls {
            let Some(answered) = call.answered else { continue };
            count += 1;
            failed += u64::from(call.failed());
            record(&mut latency, answered.since(call.planned));
        }
        UserPhase { calls: count, failed, latency: Percentiles::of(&latency) }
    }
}

impl UserFigures {
    /// The figures; `None` if there were no users.
    pub(super) fn of(calls: &[UserCall], outages: &[Window]) -> Option<UserFigures> {
        if calls.is_empty() {
            return None;
        }
        let first = outages.iter().map(|outage| outage.from).min();
        let during = |call: &&UserCall| outages.iter().any(|outage| outage.contains(call.planned));
        let before = |call: &&UserCall| first.is_none_or(|first| call.planned < first);
        Some(UserFigures {
            all: UserPhase::of(calls.iter()),
            before: UserPhase::of(calls.iter().filter(before)),
            during: UserPhase::of(calls.iter().filter(during)),
            after: UserPhase::of(calls.iter().filter(|call| !before(call) && !during(call))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Outcome;
    use crate::job::JobId;
    use crate::time::Instant;

    #[test]
    fn phases_are_told_apart() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let call = |planned, took, outcome| UserCall {
            number: JobId(1),
            planned: at(planned),
            answered: Some(at(planned + took)),
            outcome: Some(outcome),
        };
        let calls = [
            call(50, 10, Outcome::Ok),
            call(150, 5, Outcome::status(503)),
            call(250, 500, Outcome::TimedOut),
            call(260, 20, Outcome::Ok),
            UserCall { answered: None, outcome: None, ..call(270, 0, Outcome::Ok) },
        ];
        let outage = Window { from: at(100), until: at(200) };
        let figures = UserFigures::of(&calls, &[outage]).expect("there are users");
        let shares = [figures.all, figures.before, figures.during, figures.after].map(|phase| phase.failed_share());
        assert_eq!(shares, [Some(0.5), Some(0.0), Some(1.0), Some(0.5)]);
        assert!((figures.after.latency.max_ms - 500.0).abs() < 1.0);
        assert_eq!(UserFigures::of(&[], &[outage]), None);
    }
}
