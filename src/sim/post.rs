//! A post in the crew: the workers that stand there, one after another, and what befalls them.

use std::time::Duration;

use crate::journal::{self, Entry, Sink};
use crate::time::{Instant, nanos};
use crate::worker::{Command, Event, Worker};

/// A post, and who stands there.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) worker: Worker,
    /// When it is planned to wake.
    pub(super) woken: Instant,
    /// Nobody stands here: who did was killed. Until then, if it is known.
    pub(super) empty_until: Option<Instant>,
    /// It stands still until then.
    pub(super) still_until: Option<Instant>,
    /// What came in meanwhile.
    pub(super) kept: Vec<Event>,
    /// How far its clock is ahead; zero for the run's own.
    pub(super) ahead: Duration,
    /// How far the clock of who comes next will be.
    pub(super) next_ahead: Option<Duration>,
    /// It has nothing more to do.
    pub(super) done: bool,
}

impl Post {
    pub(super) fn of(worker: Worker, ahead: Duration) -> Post {
        Post {
            worker,
            woken: Instant::FAR,
            empty_until: None,
            still_until: None,
            kept: Vec::new(),
            ahead,
            next_ahead: None,
            done: false,
        }
    }

    /// Whether somebody stands here who can do something.
    pub(super) fn is_up(&self) -> bool {
        self.empty_until.is_none() && self.still_until.is_none()
    }

    /// Whether it would hear that there is work.
    pub(super) fn listens(&self) -> bool {
        self.is_up() && self.worker.has_room()
    }

    /// Whether it has nothing more to do, or nobody is left to do it.
    pub(super) fn is_done(&self) -> bool {
        self.empty_until.is_some() || self.worker.is_idle()
    }

    /// A step by the worker's own clock; it is recorded by the run's.
    pub(super) fn step(&mut self, now: Instant, event: Event, sink: &mut impl Sink, out: &mut Vec<Command>) {
        if self.ahead.is_zero() {
            journal::step(&mut self.worker, now, event, sink, out);
        } else {
            journal::step(&mut self.worker, now + self.ahead, event, &mut At(now, sink), out);
        }
    }

    /// When its worker wants to be woken, by the run's clock.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let shown = self.worker.wake_at()?;
        Some(Instant::from_nanos(shown.as_nanos().saturating_sub(nanos(self.ahead))))
    }
}

/// Everything happens at this moment.
struct At<'a, S>(Instant, &'a mut S);

impl<S: Sink> Sink for At<'_, S> {
    fn record(&mut self, entry: Entry<'_>) {
        self.1.record(Entry { at: self.0, ..entry });
    }
}
