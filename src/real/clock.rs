//! The run's one clock: the machine's monotonic time since an epoch, as everybody's [`Instant`].

use std::time::Duration;

use tokio::time::Instant as TokioInstant;

use crate::time::Instant;

/// A clock whose zero is the start of the run. Copies show the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// A clock that starts after `delay`, and shows [`Instant::START`] until then: time to set things up.
    pub fn starting_in(delay: Duration) -> Clock {
        Clock(std::time::Instant::now() + delay)
    }

    /// The present.
    pub fn now(&self) -> Instant {
        Instant::START + std::time::Instant::now().saturating_duration_since(self.0)
    }

    /// When the runtime's clock shows that it is `at`; `None` if never.
    pub(super) fn deadline(&self, at: Instant) -> Option<TokioInstant> {
        self.0.checked_add(at.since_start()).map(TokioInstant::from_std)
    }

    /// Sleeps until the clock starts.
    pub async fn started(&self) {
        tokio::time::sleep_until(TokioInstant::from_std(self.0)).await;
    }

    /// Sleeps until `at`; not at all if it has passed. The runtime's timer rounds up to the next millisecond.
    pub async fn sleep_until(&self, at: Instant) {
        match self.deadline(at) {
            Some(deadline) if at > self.now() => tokio::time::sleep_until(deadline).await,
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}
