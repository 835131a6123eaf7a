//! The limit: a priority queue that is popped and pushed, and nothing else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

use simq::sim::Calendar;
use simq::time::Instant;

use super::clock;

/// Pops and pushes `events` entries of a standard heap that holds `pending`; each comes again after a random time.
pub fn heap(pending: usize, events: u64) -> Duration {
    let mut chance = Chance(7);
    let mut heap: BinaryHeap<Reverse<(u64, u64, u32)>> =
        (0..pending as u64).map(|number| Reverse((chance.next(), number, number as u32))).collect();
    let (_, spent) = clock::time(|| {
        for number in 0..events {
            let Some(Reverse((at, _, what))) = heap.pop() else { return };
            heap.push(Reverse((at + chance.next(), number, black_box(what))));
        }
    });
    spent
}

/// The same with the simulator's calendar.
pub fn calendar(pending: usize, events: u64) -> Duration {
    let mut chance = Chance(7);
    let mut calendar: Calendar<u32> = Calendar::default();
    for what in 0..pending {
        calendar.plan(Instant::from_nanos(chance.next()), what as u32);
    }
    let (_, spent) = clock::time(|| {
        for _ in 0..events {
            let Some((at, what)) = calendar.take() else { return };
            calendar.plan(at + Duration::from_nanos(chance.next()), black_box(what));
        }
    });
    spent
}

/// SplitMix64 (Steele, Lea, Flood, 2014): cheap, so that it is the queue that is measured.
pub struct Chance(pub u64);

impl Chance {
    /// 64 of them.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Up to about a second, in nanoseconds.
    fn next(&mut self) -> u64 {
        self.bits() >> 34
    }
}
