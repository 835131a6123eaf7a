//! What happens next: a priority queue of things to come, by time, and at equal times in the order in which they were planned.
//!
//! A 4-ary heap with the key in the entry: a comparison touches no memory but the heap's, and the tree is half as deep as a
//! binary one, which counts where it no longer fits the cache. Taking the earliest leaves its place vacant until the next is
//! planned, since most things plan another: one walk down instead of a walk down and a walk up.
//!
//! Source of the shape: LaMarca and Ladner, "The Influence of Caches on the Performance of Heaps", 1996.

use crate::time::Instant;

const ARITY: usize = 4;
/// So many entries fit a processor's nearer caches. Up to here the least of four is found without a branch that can't be foreseen; beyond,
/// a branch is what lets the processor look ahead into memory while it waits.
const NEAR: usize = 1 << 16;

/// Things to come, small enough to be copied.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    heap: Vec<Entry<T>>,
    /// The first place is free: its entry was taken.
    vacant: bool,
    planned: u64,
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> Entry<T> {
    /// What entries are ordered by, as one number.
    fn key(&self) -> u128 {
        (u128::from(self.at) << 64) | u128::from(self.number)
    }

    fn before(&self, other: &Entry<T>) -> bool {
        (self.at, self.number) < (other.at, other.number)
    }
}

impl<T: Copy> Default for Calendar<T> {
    fn default() -> Calendar<T> {
        Calendar { heap: Vec::new(), vacant: false, planned: 0, now: Instant::START }
    }
}

impl<T: Copy> Calendar<T> {
    /// Plans `what` for `at`. What would lie in the past happens at once, after all that is planned for this instant already.
    pub fn plan(&mut self, at: Instant, what: T) {
        let entry = Entry { at: at.max(self.now).as_nanos(), number: self.planned, what };
        self.planned += 1;
        if self.vacant {
            self.vacant = false;
            self.sink(entry);
        } else {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1, entry);
        }
    }

    /// Takes the earliest, and moves the present there.
    pub fn take(&mut self) -> Option<(Instant, T)> {
        self.close();
        let first = *self.heap.first()?;
        self.vacant = true;
        self.now = Instant::from_nanos(first.at);
        Some((self.now, first.what))
    }

    /// The time of what was taken last.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many things are to come.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.vacant)
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many things were planned so far.
    pub fn planned(&self) -> u64 {
        self.planned
    }

    /// Fills the vacant place from the end.
    fn close(&mut self) {
        if !std::mem::take(&mut self.vacant) {
            return;
        }
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sink(last);
        }
    }

    /// Puts `entry` where it belongs on the way down from the first place, which is free.
    fn sink(&mut self, entry: Entry<T>) {
        let near = self.heap.len() <= NEAR;
        let heap = &mut self.heap[..];
        let mut place = 0;
        loop {
            let first = place * ARITY + 1;
            let least = match heap.get(first..heap.len().min(first + ARITY)) {
                Some([a, b, c, d]) if near => least_of_four(a.key(), b.key(), c.key(), d.key()),
                Some(some) if !some.is_empty() => least_of(some),
                _ => break,
            };
            let child = heap[first + least];
            if !child.before(&entry) {
                break;
            }
            heap[place] = child;
            place = first + least;
        }
        heap[place] = entry;
    }

    /// Puts `entry` where it belongs on the way up from `place`.
    fn rise(&mut self, mut place: usize, entry: Entry<T>) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = entry;
    }
}

fn least_of_four(a: u128, b: u128, c: u128, d: u128) -> usize {
    let (left, of_left) = if b < a { (b, 1) } else { (a, 0) };
    let (right, of_right) = if d < c { (d, 3) } else { (c, 2) };
    if right < left { of_right } else { of_left }
}

fn least_of<T>(entries: &[Entry<T>]) -> usize {
    let mut least = 0;
    for place in 1..entries.len() {
        if entries[place].before(&entries[least]) {
            least = place;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_leave_in_the_order_in_which_they_were_planned() {
        let mut calendar = Calendar::default();
        for what in 0..100 {
            calendar.plan(Instant::from_nanos(7), what);
        }
        let order: Vec<u32> = std::iter::from_fn(|| calendar.take().map(|(_, what)| what)).collect();
        assert_eq!(order, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn what_lies_in_the_past_happens_now() {
        let mut calendar = Calendar::default();
        calendar.plan(Instant::from_nanos(10), 'a');
        assert_eq!(calendar.take(), Some((Instant::from_nanos(10), 'a')));
        calendar.plan(Instant::from_nanos(3), 'b');
        assert_eq!(calendar.take(), Some((Instant::from_nanos(10), 'b')));
        assert!(calendar.is_empty() && calendar.take().is_none());
    }

    proptest! {
        /// Against a sorted list: at each step plan one (`Some`) or take one.
        #[test]
        fn it_gives_what_a_sorted_list_gives(steps in prop::collection::vec(prop::option::weighted(0.6, 0_u64..50), 0..400)) {
            let mut calendar = Calendar::default();
            let mut list: Vec<(u64, u64)> = Vec::new();
            let (mut now, mut planned) = (0, 0);
            for step in steps {
                match step {
                    Some(after) => {
                        calendar.plan(Instant::from_nanos(now + after), planned);
                        list.push((now + after, planned));
                        planned += 1;
                    }
                    None => {
                        let least = list.iter().copied().min();
                        list.retain(|entry| Some(*entry) != least);
                        now = least.map_or(now, |(at, _)| at);
                        prop_assert_eq!(calendar.take(), least.map(|(at, what)| (Instant::from_nanos(at), what)));
                    }
                }
                prop_assert_eq!(calendar.len(), list.len());
            }
        }
    }
}
