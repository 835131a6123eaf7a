//! A priority queue of small things by time, and by a number where times are equal.
//!
//! A 4-ary heap with the key in the entry: a comparison touches no memory but the heap's, and the tree is half as deep as a
//! binary one, which counts where it no longer fits the cache.
//!
//! Source of the shape: LaMarca and Ladner, "The Influence of Caches on the Performance of Heaps", 1996.

const ARITY: usize = 4;
/// So many entries fit a processor's nearer caches. Up to here the least of four is found without a branch that can't be foreseen; beyond,
/// a branch is what lets the processor look ahead into memory while it waits.
const NEAR: usize = 1 << 16;

/// Entries, the least of them first.
#[derive(Clone, Debug)]
pub(super) struct Heap<T>(Vec<Entry<T>>);

/// Something that comes first by its time, then by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<T> {
    pub(super) at: u64,
    pub(super) number: u64,
    pub(super) what: T,
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

impl<T> Default for Heap<T> {
    fn default() -> Heap<T> {
        Heap(Vec::new())
    }
}

impl<T: Copy> Heap<T> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn first(&self) -> Option<&Entry<T>> {
        self.0.first()
    }

    pub(super) fn push(&mut self, entry: Entry<T>) {
        self.0.push(entry);
        self.rise(self.0.len() - 1, entry);
    }

    pub(super) fn pop(&mut self) -> Option<Entry<T>> {
        let last = self.0.pop()?;
        let Some(first) = self.0.first().copied() else { return Some(last) };
        self.sink(last);
        Some(first)
    }

    /// Puts `entry` in the place of the first, which must be there: one walk down instead of a walk down and a walk up.
    pub(super) fn replace(&mut self, entry: Entry<T>) {
        self.sink(entry);
    }

    /// Puts `entry` where it belongs on the way down from the first place, which is free.
    fn sink(&mut self, entry: Entry<T>) {
        let near = self.0.len() <= NEAR;
        let heap = &mut self.0[..];
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
            if !entry.before(&self.0[parent]) {
                break;
            }
            self.0[place] = self.0[parent];
            place = parent;
        }
        self.0[place] = entry;
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

    proptest! {
        #[test]
        fn it_gives_its_entries_in_order(times in prop::collection::vec(0_u64..50, 0..300), replaced in prop::option::of(0_u64..50)) {
            let mut heap = Heap::default();
            for (&at, number) in times.iter().zip(0..) {
                heap.push(Entry { at, number, what: () });
            }
            let mut list: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
            list.sort_unstable();
            if let (Some(at), Some(first)) = (replaced, list.first_mut()) {
                *first = (at, 1000);
                heap.replace(Entry { at, number: 1000, what: () });
                list.sort_unstable();
            }
            let given: Vec<(u64, u64)> = std::iter::from_fn(|| heap.pop()).map(|entry| (entry.at, entry.number)).collect();
            prop_assert_eq!(given, list);
        }
    }
}
