//! Capacity: a fixed number of servers behind one bounded first-in-first-out queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::time::Instant;

/// The servers' future: when each is free, and when each waiting call will be started.
#[derive(Debug)]
pub(super) struct Servers {
    free_at: BinaryHeap<Reverse<Instant>>,
    waiting: VecDeque<Instant>,
    queue: usize,
    latest: Instant,
}

impl Servers {
    pub(super) fn new(servers: u32, queue: u32) -> Servers {
        assert!(servers > 0, "a downstream without servers answers nothing");
        Servers {
            free_at: (0..servers).map(|_| Reverse(Instant::START)).collect(),
            waiting: VecDeque::new(),
            queue: queue as usize,
            latest: Instant::START,
        }
    }

    /// When the work of a call that arrives `now` will be done; `None` if the queue is full.
    pub(super) fn admit(&mut self, now: Instant, work: Duration) -> Option<Instant> {
        let now = now.max(self.latest);
        self.latest = now;
        while self.waiting.front().is_some_and(|start| *start <= now) {
            self.waiting.pop_front();
        }
        let Reverse(free) = *self.free_at.peek().expect("there is at least one server");
        let start = free.max(now);
        if start > now && self.waiting.len() >= self.queue {
            return None;
        }
        if start > now {
            self.waiting.push_back(start);
        }
        let done = start + work;
        self.free_at.pop();
        self.free_at.push(Reverse(done));
        Some(done)
    }
}
