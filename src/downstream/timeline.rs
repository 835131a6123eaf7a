//! The timeline: which place of the scenario's weather it is now. It follows the clock unless it is frozen.

use std::time::Duration;

use crate::time::Instant;

/// A timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeline {
    /// It stands at this place.
    Frozen(Instant),
    /// It runs, so far behind the clock.
    Behind(Duration),
}

impl Timeline {
    /// The place at which it stands `now`.
    pub(super) fn place(&self, now: Instant) -> Instant {
        match *self {
            Timeline::Frozen(place) => place,
            Timeline::Behind(by) => now.before(by),
        }
    }

    /// When the clock shows that the timeline has come to `place`; `None` while it is frozen.
    pub(super) fn clock(&self, place: Instant) -> Option<Instant> {
        match *self {
            Timeline::Frozen(_) => None,
            Timeline::Behind(by) => Some(place + by),
        }
    }

    pub(super) fn freeze(&mut self, now: Instant) {
        *self = Timeline::Frozen(self.place(now));
    }

    pub(super) fn resume(&mut self, now: Instant) {
        if let Timeline::Frozen(place) = *self {
            *self = Timeline::Behind(now.since(place));
        }
    }

    pub(super) fn is_frozen(&self) -> bool {
        matches!(self, Timeline::Frozen(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_timeline_goes_on_from_where_it_stood() {
        let at = |secs: u64| Instant::from_nanos(secs * 1_000_000_000);
        let mut timeline = Timeline::Behind(Duration::ZERO);
        timeline.freeze(at(3));
        assert_eq!((timeline.place(at(9)), timeline.clock(at(4))), (at(3), None));
        timeline.resume(at(10));
        assert_eq!((timeline.place(at(11)), timeline.clock(at(5))), (at(4), Some(at(12))));
    }
}
