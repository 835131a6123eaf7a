//! The bell: tells one worker that has room when there is work, and not all of them.
//!
//! Reminders are kept by the millisecond in which they ring, which is the grain of the timer anyhow: a wave of retries
//! that come due together is one reminder. A worker that hears it and finds more than it can take has the bell rung again.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::Clock;
use crate::time::Instant;

const GRAIN: u64 = 1_000_000;

/// The reminders of a run.
#[derive(Debug, Default)]
pub(super) struct Bell {
    /// Milliseconds of the run, rounded up.
    due: Mutex<BTreeSet<u64>>,
    sooner: Notify,
    rung: Notify,
}

impl Bell {
    /// Rings `after` so long from `now`.
    pub(super) fn remind(&self, now: Instant, after: Duration) {
        if after.is_zero() {
            self.rung.notify_one();
            return;
        }
        let at = (now + after).as_nanos().div_ceil(GRAIN);
        let mut due = self.due.lock().expect("nobody panics while holding it");
        if due.first().is_none_or(|first| at < *first) {
            self.sooner.notify_one();
        }
        due.insert(at);
    }

    /// Resolves for one worker when the bell rings; a ring that nobody waits for is kept for the next who does.
    pub(super) async fn heard(&self) {
        self.rung.notified().await;
    }

    /// Rings at each reminder's time, until it is dropped.
    pub(super) async fn keep_time(&self, clock: Clock) {
        loop {
            let next = self.due.lock().expect("nobody panics while holding it").first().copied();
            let at = next.map_or(Instant::FAR, |at| Instant::from_nanos(at.saturating_mul(GRAIN)));
            tokio::select! {
                () = self.sooner.notified() => {}
                () = clock.sleep_until(at) => self.ring(clock.now()),
            }
        }
    }

    /// Once for each reminder whose time has come.
    fn ring(&self, now: Instant) {
        let mut due = self.due.lock().expect("nobody panics while holding it");
        let later = due.split_off(&(now.as_nanos() / GRAIN + 1));
        for _ in std::mem::replace(&mut *due, later) {
            self.rung.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_reminder_wakes_one_waiter() {
        let (bell, clock) = (Bell::default(), Clock::starting_in(Duration::ZERO));
        bell.remind(clock.now(), Duration::from_millis(5));
        let woken = async {
            bell.heard().await;
            let other = std::pin::pin!(bell.heard());
            futures_util::FutureExt::now_or_never(other).is_none()
        };
        tokio::select! {
            alone = woken => assert!(alone, "the second waiter goes on waiting"),
            () = bell.keep_time(clock) => {}
        }
    }
}
