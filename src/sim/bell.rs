//! The bell in virtual time: who is told that there is work.
//!
//! As in the real world one worker is told at a time, of those that have room the one that has been still for longest; a ring
//! that finds nobody is kept for the next who has, and only one is. Reminders of the same grain of time are one.

use std::collections::BTreeSet;

use crate::time::Instant;

/// Nobody.
const NOBODY: u32 = u32::MAX;

/// Reminders, and the workers that would listen.
#[derive(Clone, Debug)]
pub(super) struct Bell {
    reminders: BTreeSet<Instant>,
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
        Bell { reminders: BTreeSet::new(), kept: false, after: links.clone(), before: links }
    }

    /// Notes a reminder; whether it must be planned, there being none for that time yet.
    pub(super) fn remind(&mut self, at: Instant) -> bool {
        self.reminders.insert(at)
    }

    /// The first reminder's time has come. Timers may be late, and then not in order: it does not matter which of two rings first.
    pub(super) fn is_due(&mut self) {
        self.reminders.pop_first();
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
    fn one_ring_that_finds_nobody_is_kept() {
        let mut bell = Bell::new(2);
        assert_eq!([bell.ring(), bell.ring()], [None, None]);
        assert!(!bell.moved(0, false));
        assert!(bell.moved(1, true), "it hears what was kept");
        assert!(!bell.moved(0, true), "one ring is kept and no more");
        assert_eq!(bell.ring(), Some(0));
    }
}
