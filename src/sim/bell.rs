//! The bell in virtual time: who is told that there is work.
//!
//! As in the real world one worker is told at a time, of those that have room the one that has been still for longest; a ring
//! that finds nobody is kept for the next who has, and only one is. Reminders of the same grain of time are one, and one timer waits
//! for the first of them: if it runs late it rings once for each whose time has come.

use std::time::Duration;

use super::heap::Heap;
use super::world::{Next, World};
use crate::journal::Sink;
use crate::time::Instant;
use crate::worker::Event;

/// Nobody.
const NOBODY: u32 = u32::MAX;
/// So many reminders are remembered to be there already: a prime, so that those of one grain have places of their own.
const KNOWN: usize = 4093;

/// Reminders, and the workers that would listen.
#[derive(Clone, Debug)]
pub(super) struct Bell {
    /// By time; some may be there twice.
    reminders: Heap<()>,
    /// Some of them, each at its remainder.
    known: Vec<Instant>,
    /// What the timer is set for, and when it runs.
    set_for: Instant,
    runs: Instant,
    kept: bool,
    /// A ring of workers through these two, with an anchor at the end: longest still first.
    after: Vec<u32>,
    before: Vec<u32>,
}

impl Bell {
    /// For so many workers, none of which listens yet.
    pub(super) fn new(workers: u32) -> Bell {
        let anchor = workers;
        let mut links = vec![NOBODY; workers as usize + 1];
        links[anchor as usize] = anchor;
        Bell {
            reminders: Heap::default(),
            known: vec![Instant::START; KNOWN],
            set_for: Instant::FAR,
            runs: Instant::FAR,
            kept: false,
            after: links.clone(),
            before: links,
        }
    }

    /// Notes a reminder for a time to come; whether the timer must be [set](Bell::set) anew.
    pub(super) fn remind(&mut self, at: Instant) -> bool {
        let known = &mut self.known[at.as_nanos() as usize % KNOWN];
        if std::mem::replace(known, at) != at {
            self.reminders.push(at.as_nanos(), ());
        }
        at < self.set_for
    }

    /// The timer is set for `at`, and will run at `runs`; no other is.
    pub(super) fn set(&mut self, at: Instant, runs: Instant) {
        (self.set_for, self.runs) = (at, runs);
    }

    /// A timer runs: how many reminders' time has come, and when the next one's will, if there is one. `None` from a timer that was set anew.
    pub(super) fn due(&mut self, now: Instant) -> Option<(u32, Option<Instant>)> {
        if now != self.runs {
            return None;
        }
        self.set(Instant::FAR, Instant::FAR);
        let (mut rings, mut last) = (0, None);
        while let Some(at) = self.first().filter(|at| *at <= now) {
            self.reminders.pop();
            rings += u32::from(last != Some(at));
            last = Some(at);
        }
        Some((rings, self.first()))
    }

    fn first(&mut self) -> Option<Instant> {
        self.reminders.first().map(Instant::from_nanos)
    }

    /// Rings once: who is told, or nobody yet.
    pub(super) fn ring(&mut self) -> Option<u32> {
        let anchor = self.anchor();
        let first = self.after[anchor as usize];
        if first == anchor {
            self.kept = true;
            return None;
        }
        self.unlink(first);
        Some(first)
    }

    /// A worker has moved, and has room for work or not: it listens anew, at the end, or not at all. Whether it hears a ring that
    /// was kept.
    pub(super) fn moved(&mut self, worker: u32, has_room: bool) -> bool {
        if self.after[worker as usize] != NOBODY {
            self.unlink(worker);
        }
        if !has_room {
            return false;
        }
        if std::mem::take(&mut self.kept) {
            return true;
        }
        let anchor = self.anchor();
        let last = self.before[anchor as usize];
        (self.after[last as usize], self.before[worker as usize]) = (worker, last);
        (self.after[worker as usize], self.before[anchor as usize]) = (anchor, worker);
        false
    }

    fn anchor(&self) -> u32 {
        self.after.len() as u32 - 1
    }

    fn unlink(&mut self, worker: u32) {
        let (before, after) = (self.before[worker as usize], self.after[worker as usize]);
        (self.after[before as usize], self.before[after as usize]) = (after, before);
        (self.after[worker as usize], self.before[worker as usize]) = (NOBODY, NOBODY);
    }
}

impl<S: Sink> World<'_, S> {
    /// A worker hears that there is work; one that has none to spare passes it on.
    pub(super) fn notify(&mut self, place: u32) {
        if self.posts[place as usize].listens() {
            self.step(place, Event::Notified);
        } else {
            self.ring();
        }
    }

    /// Somebody is to be told of work after so long.
    pub(super) fn remind(&mut self, now: Instant, after: Duration) {
        if after.is_zero() {
            return self.ring();
        }
        let at = self.rounded(now + after);
        if self.bell.remind(at) {
            self.set_bell(now, at);
        }
    }

    fn set_bell(&mut self, now: Instant, at: Instant) {
        let runs = self.timer(now, at);
        self.bell.set(at, runs);
        self.calendar.plan(runs, Next::Ring);
    }

    /// The bell's timer runs.
    pub(super) fn due(&mut self, now: Instant) {
        let Some((rings, next)) = self.bell.due(now) else { return };
        (0..rings).for_each(|_| self.ring());
        if let Some(at) = next {
            self.set_bell(now, at);
        }
    }

    /// Somebody is to be told of work now.
    pub(super) fn ring(&mut self) {
        if let Some(worker) = self.bell.ring() {
            self.calendar.plan(self.calendar.now(), Next::Notify(worker));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_that_has_been_still_for_longest_is_told_first() {
        let mut bell = Bell::new(3);
        for worker in [0, 1, 2, 0] {
            assert!(!bell.moved(worker, true));
        }
        assert_eq!([bell.ring(), bell.ring(), bell.ring()], [Some(1), Some(2), Some(0)]);
    }

    #[test]
    fn a_late_timer_rings_for_each_reminder_whose_time_has_come() {
        let at = Instant::from_nanos;
        let mut bell = Bell::new(1);
        assert!(bell.remind(at(7)));
        bell.set(at(7), at(12));
        assert!(!bell.remind(at(10)) && !bell.remind(at(7)) && !bell.remind(at(10 + KNOWN as u64)) && !bell.remind(at(10)));
        assert!(bell.remind(at(5)), "the timer is set for a later one");
        bell.set(at(5), at(11));
        assert_eq!(bell.due(at(11)), Some((3, Some(at(10 + KNOWN as u64)))));
        assert_eq!(bell.due(at(12)), None);
    }

    #[test]
    fn one_ring_that_finds_nobody_is_kept() {
        let mut bell = Bell::new(2);
        assert_eq!([bell.ring(), bell.ring()], [None, None]);
        assert!(!bell.moved(0, false));
        assert!(bell.moved(1, true), "it hears what was kept");
        assert!(!bell.moved(0, true), "one ring is kept and no more");
        assert_eq!(bell.ring(), Some(0));
    }
}
