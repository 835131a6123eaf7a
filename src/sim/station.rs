//! The machine that all share: processors, and connections to the database.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::time::Instant;

/// Processors that serve whoever comes, in order of arrival: like the downstream's servers, the end of a piece of work is known when it
/// is asked for.
#[derive(Clone, Debug)]
pub(super) struct Processors {
    /// When each is free again; those that are not here are free now.
    busy: BinaryHeap<Reverse<Instant>>,
    count: usize,
}

impl Processors {
    pub(super) fn new(count: u32) -> Processors {
        Processors { busy: BinaryHeap::new(), count: count as usize }
    }

    /// When this work will be done. To be asked in order of time.
    pub(super) fn serve(&mut self, now: Instant, work: Duration) -> Instant {
        if work.is_zero() {
            return now;
        }
        if self.busy.len() < self.count {
            self.busy.push(Reverse(now + work));
            return now + work;
        }
        let mut first = self.busy.peek_mut().expect("there is at least one processor");
        *first = Reverse(first.0.max(now) + work);
        first.0
    }
}

/// Connections, and who waits for one, first come, first served.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    free: u32,
    waiting: VecDeque<u32>,
}

impl Connections {
    pub(super) fn new(count: u32) -> Connections {
        Connections { free: count, waiting: VecDeque::new() }
    }

    /// Takes one for this asker, who otherwise waits.
    pub(super) fn take(&mut self, asker: u32) -> bool {
        let free = self.free > 0;
        if free {
            self.free -= 1;
        } else {
            self.waiting.push_back(asker);
        }
        free
    }

    /// Gives one back; it goes to the asker that has waited longest, if any does.
    pub(super) fn give_back(&mut self) -> Option<u32> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.free += 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_work_than_processors_waits_its_turn() {
        let (ms, at) = (Duration::from_millis, |ms| Instant::START + Duration::from_millis(ms));
        let mut processors = Processors::new(2);
        let ends: Vec<Instant> = (0..4).map(|_| processors.serve(at(0), ms(10))).collect();
        assert_eq!(ends, [at(10), at(10), at(20), at(20)]);
        assert_eq!(processors.serve(at(50), ms(1)), at(51));
        assert_eq!(processors.serve(at(50), Duration::ZERO), at(50));
    }

    #[test]
    fn a_connection_goes_to_who_has_waited_longest() {
        let mut connections = Connections::new(1);
        assert!(connections.take(1) && !connections.take(2) && !connections.take(3));
        assert_eq!([connections.give_back(), connections.give_back(), connections.give_back()], [Some(2), Some(3), None]);
        assert!(connections.take(4));
    }
}
