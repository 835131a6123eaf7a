//! Replications: the same plan under many seeds, on all processors.
//!
//! A run is one thread's from beginning to end, and knows nothing of the others; so figures depend on the seed alone, however many threads
//! there are and whatever the order in which they finish.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Does `work` for each number below `count` on `threads` threads; what came of it, by number, as far as it got before `stop`.
pub fn replicate<T: Send>(
    count: usize,
    threads: NonZero<usize>,
    stop: &AtomicBool,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(count) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = work(number);
                    done.lock().expect("nobody panics while holding it")[number] = Some(result);
                }
            });
        }
    });
    done.into_inner().expect("nobody panics while holding it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        for threads in [1, 2, 7] {
            let threads = NonZero::new(threads).expect("it is not zero");
            let squares = replicate(20, threads, &AtomicBool::new(false), |number| number * number);
            assert_eq!(squares, (0..20).map(|n| Some(n * n)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_finished_before_the_stop_is_kept() {
        let stop = AtomicBool::new(false);
        let one = NonZero::<usize>::MIN;
        let kept = replicate(5, one, &stop, |number| stop.store(number == 1, Ordering::Relaxed));
        assert_eq!(kept, [Some(()), Some(()), None, None, None]);
    }
}
