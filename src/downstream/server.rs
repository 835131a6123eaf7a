//! Capacity: servers behind one bounded first-in-first-out queue.
//!
//! The finish time is known on arrival: when a server falls free, and the service time. Where fewer servers are left than
//! there are, a call starts when so few are busy that it may; those that had to wait in a brownout are served at its pace even if it
//! ends meanwhile, and nobody overtakes them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::time::{Instant, Window};

/// The servers' future: when each is free, and when each waiting call will be started.
#[derive(Debug)]
pub(super) struct Servers {
    free_at: BinaryHeap<Reverse<Instant>>,
    waiting: VecDeque<Instant>,
    /// When each call in the house will be done, but for those in `fresh`.
    done: BinaryHeap<Reverse<Instant>>,
    /// The same of calls that came since somebody last asked; calls that are done may be among them.
    fresh: Vec<Instant>,
    /// Where `fresh` is next looked through for them.
    most_fresh: usize,
    queue: usize,
    last_start: Instant,
}

/// So many calls at least come between two looks through the fresh ones.
const LOOK: usize = 64;

/// Why a call is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnedAway {
    /// The queue is full.
    Full,
    /// It would wait too long.
    Shed,
}

impl Servers {
    pub(super) fn new(servers: u32, queue: u32) -> Servers {
        assert!(servers > 0, "a downstream without servers answers nothing");
        Servers {
            free_at: (0..servers).map(|_| Reverse(Instant::START)).collect(),
            waiting: VecDeque::new(),
            done: BinaryHeap::new(),
            fresh: Vec::new(),
            most_fresh: LOOK,
            queue: queue as usize,
            last_start: Instant::START,
        }
    }

    /// Calls that are worked on or wait.
    pub(super) fn in_house(&mut self, now: Instant) -> usize {
        self.done.extend(self.fresh.drain(..).map(Reverse));
        while self.done.peek().is_some_and(|Reverse(done)| *done <= now) {
            self.done.pop();
        }
        self.done.len()
    }

    /// When the work of a call that arrives `now` will be done, on `left` servers, if it takes `work` from its start; calls that would wait for longer than
    /// `patience` are turned away.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        work: impl FnOnce(Instant) -> Duration,
        left: u32,
        patience: Option<Duration>,
    ) -> Result<Window, TurnedAway> {
        while self.waiting.front().is_some_and(|start| *start <= now) {
            self.waiting.pop_front();
        }
        let idle = self.take_idle(left);
        let Reverse(free) = *self.free_at.peek().expect("there is at least one server");
        let mut start = free.max(now);
        if start > now || !self.waiting.is_empty() {
            start = start.max(self.last_start);
        }
        let verdict = if start > now && self.waiting.len() >= self.queue {
            Err(TurnedAway::Full)
        } else if patience.is_some_and(|patience| start.since(now) > patience) {
            Err(TurnedAway::Shed)
        } else {
            Ok(Window { from: start, until: start + work(start) })
        };
        if let Ok(window) = verdict {
            if let Some(mut first) = self.free_at.peek_mut() {
                *first = Reverse(window.until);
            }
            self.note(now, window.until);
            self.last_start = self.last_start.max(start);
            if start > now {
                self.waiting.push_back(start);
            }
        }
        if !idle.is_empty() {
            self.free_at.extend(idle);
        }
        verdict
    }

    /// A call will be done then. Nobody may ever ask how many there are, so this takes next to no time.
    fn note(&mut self, now: Instant, done: Instant) {
        self.fresh.push(done);
        if self.fresh.len() >= self.most_fresh {
            self.fresh.retain(|done| *done > now);
            self.most_fresh = LOOK + 2 * self.fresh.len();
        }
    }

    /// Takes away the servers that fall free first and may not be used.
    fn take_idle(&mut self, left: u32) -> Vec<Reverse<Instant>> {
        let surplus = self.free_at.len().saturating_sub(left.max(1) as usize);
        (0..surplus).filter_map(|_| self.free_at.pop()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    const WORK: Duration = Duration::from_millis(10);

    #[test]
    fn with_fewer_servers_left_calls_wait_and_nobody_overtakes() {
        let mut servers = Servers::new(3, 10);
        let start = |servers: &mut Servers, ms, left| servers.admit(at(ms), |_| WORK, left, None).map(|window| window.from);
        assert_eq!(start(&mut servers, 0, 1), Ok(at(0)));
        assert_eq!(start(&mut servers, 1, 1), Ok(at(10)), "two are idle and may not help");
        assert_eq!(start(&mut servers, 2, 3), Ok(at(10)), "free servers again, but others wait");
        assert_eq!(start(&mut servers, 11, 3), Ok(at(11)));
        assert_eq!(servers.in_house(at(11)), 3);
    }

    #[test]
    fn a_call_that_would_wait_too_long_is_shed() {
        let mut servers = Servers::new(1, 10);
        let patience = Some(Duration::from_millis(15));
        let verdicts: Vec<bool> = (0..4).map(|_| servers.admit(at(0), |_| WORK, 1, patience).is_ok()).collect();
        assert_eq!(verdicts, [true, true, false, false]);
        assert_eq!(servers.admit(at(0), |_| WORK, 1, patience), Err(TurnedAway::Shed));
    }
}
