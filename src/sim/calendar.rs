//! What happens next: a priority queue of things to come, by time, and at equal times in the order in which they were planned.

use super::heap::Heap;
use crate::time::Instant;

/// Things to come, small enough to be copied.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    heap: Heap<T>,
    now: Instant,
}

impl<T: Copy> Default for Calendar<T> {
    fn default() -> Calendar<T> {
        Calendar { heap: Heap::default(), now: Instant::START }
    }
}

impl<T: Copy> Calendar<T> {
    /// Plans `what` for `at`. What would lie in the past happens at once, after all that is planned for this instant already.
    #[inline]
    pub fn plan(&mut self, at: Instant, what: T) {
        self.heap.push(at.as_nanos(), what);
    }

    /// Takes the earliest, and moves the present there.
    #[inline]
    pub fn take(&mut self) -> Option<(Instant, T)> {
        let (at, what) = self.heap.pop()?;
        self.now = Instant::from_nanos(at);
        Some((self.now, what))
    }

    /// The time of what was taken last.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many things are to come.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
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
