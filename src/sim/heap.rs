//! A priority queue of small things by time, for times that never run backwards; what comes at equal times leaves in the order in which it came.
//!
//! A radix heap: an entry lies in the bucket of the highest bit in which its time differs from that of what left last. Who leaves next
//! is in the lowest bucket that is not empty, and when it leaves, the others of its bucket move to lower ones, each at most once for
//! each bit. So an entry is written a few times, one after another, where a tree would look for its place all over the memory.
//!
//! Source: Ahuja, Mehlhorn, Orlin, Tarjan, "Faster Algorithms for the Shortest Path Problem", 1990.

/// One for times that are the last one's, and one for each bit that may be the highest to differ.
const BUCKETS: usize = 65;
/// A bucket that was emptied keeps no more room than this.
const KEPT: usize = 1 << 12;

/// Things by time, in nanoseconds, the least of them first.
#[derive(Clone, Debug)]
pub(super) struct Heap<T> {
    buckets: Vec<Vec<(u64, T)>>,
    /// Of the first bucket, so many have left.
    left: usize,
    /// Bit `b - 1`: bucket `b` is not empty.
    filled: u64,
    /// The time of what left last; none is earlier.
    last: u64,
    len: usize,
    /// The earliest time, if it is known.
    least: Option<u64>,
}

impl<T> Default for Heap<T> {
    fn default() -> Heap<T> {
        let buckets = std::iter::repeat_with(Vec::new).take(BUCKETS).collect();
        Heap { buckets, left: 0, filled: 0, last: 0, len: 0, least: None }
    }
}

impl<T: Copy> Heap<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Puts one in. A time before that of what left last counts as that.
    #[inline]
    pub(super) fn push(&mut self, at: u64, what: T) {
        let at = at.max(self.last);
        self.least = if self.len == 0 { Some(at) } else { self.least.map(|least| least.min(at)) };
        self.len += 1;
        self.put(at, what);
    }

    /// The earliest time.
    pub(super) fn first(&mut self) -> Option<u64> {
        if self.least.is_none() && self.len > 0 {
            self.least = Some(if self.left < self.buckets[0].len() { self.last } else { self.earliest(self.lowest()) });
        }
        self.least
    }

    /// Takes out what comes first.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        if self.len == 0 {
            return None;
        }
        self.len -= 1;
        self.least = None;
        let Some(first) = self.buckets[0].get(self.left).copied() else { return Some(self.spread()) };
        self.left += 1;
        if self.left == self.buckets[0].len() {
            self.left = 0;
            empty(&mut self.buckets[0]);
        }
        Some(first)
    }

    #[inline]
    fn put(&mut self, at: u64, what: T) {
        let bucket = (u64::BITS - (at ^ self.last).leading_zeros()) as usize;
        self.buckets[bucket].push((at, what));
        if bucket > 0 {
            self.filled |= 1 << (bucket - 1);
        }
    }

    /// The lowest bucket but the first that is not empty; there must be one.
    fn lowest(&self) -> usize {
        self.filled.trailing_zeros() as usize + 1
    }

    fn earliest(&self, bucket: usize) -> u64 {
        self.buckets[bucket].iter().map(|(at, _)| *at).min().unwrap_or(self.last)
    }

    /// Takes the earliest out of the lowest bucket that is not empty, which is not the first, and moves the others of that bucket to lower ones.
    fn spread(&mut self) -> (u64, T) {
        let lowest = self.lowest();
        self.last = self.earliest(lowest);
        self.filled &= !(1 << (lowest - 1));
        let mut bucket = std::mem::take(&mut self.buckets[lowest]);
        let mut first = bucket[0];
        let mut found = false;
        for &(at, what) in &bucket {
            if at == self.last && !found {
                (first, found) = ((at, what), true);
            } else {
                self.put(at, what);
            }
        }
        empty(&mut bucket);
        self.buckets[lowest] = bucket;
        first
    }
}

fn empty<T>(bucket: &mut Vec<T>) {
    bucket.clear();
    if bucket.capacity() > KEPT {
        bucket.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a sorted list: at each step put one in that comes so long after the last one that left (`Some`), or take one out.
        #[test]
        fn it_gives_its_entries_in_order(steps in prop::collection::vec(prop::option::weighted(0.6, (0_u64..50, 0_u32..60)), 0..400)) {
            let (mut heap, mut list, mut last) = (Heap::default(), Vec::new(), 0);
            for (number, step) in steps.into_iter().enumerate() {
                if let Some((after, far)) = step {
                    let at = last + (after << far.saturating_sub(8));
                    heap.push(at, number);
                    list.push((at, number));
                    list.sort_unstable();
                } else {
                    let first = (!list.is_empty()).then(|| list.remove(0));
                    last = first.map_or(last, |(at, _)| at);
                    prop_assert_eq!(heap.pop(), first);
                }
                prop_assert_eq!(heap.first(), list.first().map(|(at, _)| *at));
                prop_assert_eq!(heap.len(), list.len());
            }
        }
    }
}
