//! What chaos holds a worker by: orders, and its clock.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::marks::Marks;
use crate::journal::{Entry, Sink, Tape};
use crate::metrics::Recorder;
use crate::scenario::chaos::Skew;
use crate::time::{Instant, nanos};

/// What a worker is made to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::real) enum Order {
    /// Die at once.
    Die {
        /// When its place is filled again, if ever.
        back: Option<Instant>,
    },
    /// Stand still.
    Pause {
        /// Until then.
        until: Instant,
    },
    /// Finish in order, and be followed by one with another clock.
    Follow,
}

/// An order as it is sent: which blow it belongs to, and the clock that comes with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) blow: usize,
    pub(super) order: Order,
    pub(super) skew: Option<Skew>,
}

/// What chaos holds one place by.
#[derive(Debug)]
pub(in crate::real) struct Reins {
    /// The clock of who stands there.
    pub(in crate::real) time: Time,
    pub(super) orders: Option<mpsc::UnboundedReceiver<Sent>>,
    pub(super) marks: Arc<Marks>,
    /// The clock of who comes next.
    pub(super) next: Option<Time>,
}

impl Reins {
    /// Of a worker that nothing befalls.
    pub(in crate::real) fn none() -> Reins {
        Reins { time: Time::default(), orders: None, marks: Arc::default(), next: None }
    }

    /// The next order to this worker; none ever comes where there is no chaos.
    pub(in crate::real) async fn order(&mut self, worker: u32) -> Order {
        let sent = self.next_sent().await;
        self.marks.hit(sent.blow, worker);
        if let Some(skew) = sent.skew {
            self.next = Some(Time::skewed(skew));
        }
        sent.order
    }

    /// The next order, whoever is there to take it.
    pub(super) async fn next_sent(&mut self) -> Sent {
        let sent = match &mut self.orders {
            Some(orders) => orders.recv().await,
            None => None,
        };
        match sent {
            Some(sent) => sent,
            None => std::future::pending().await,
        }
    }

    /// Whether somebody with another clock is to come.
    pub(in crate::real) fn is_followed(&self) -> bool {
        self.next.is_some()
    }
}

/// A worker's clock: the run's, or one that is off by a constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::real) struct Time {
    /// Zero for the run's own clock.
    ahead: Duration,
}

impl Time {
    fn skewed(skew: Skew) -> Time {
        Time { ahead: skew.ahead() }
    }

    /// What it shows.
    pub(in crate::real) fn at(&self, now: Instant) -> Instant {
        now + self.ahead
    }

    /// When it shows this.
    pub(in crate::real) fn true_at(&self, shown: Instant) -> Instant {
        if shown == Instant::FAR { shown } else { Instant::from_nanos(shown.as_nanos().saturating_sub(nanos(self.ahead))) }
    }

    /// A sink for what happens at this moment: figures are kept in the run's time, and the tape in the worker's.
    pub(in crate::real) fn watching<'a>(&self, now: Instant, sink: &'a mut (Recorder, Option<Tape>)) -> Watching<'a> {
        Watching { now, recorder: &mut sink.0, tape: &mut sink.1 }
    }
}

/// See [`Time::watching`].
#[derive(Debug)]
pub(in crate::real) struct Watching<'a> {
    now: Instant,
    recorder: &'a mut Recorder,
    tape: &'a mut Option<Tape>,
}

impl Sink for Watching<'_> {
    fn record(&mut self, entry: Entry<'_>) {
        self.recorder.record(Entry { at: self.now, ..entry });
        self.tape.record(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_runs_as_fast_as_the_right_one() {
        let hour = Duration::from_secs(3600);
        let (one, two) = (Instant::from_nanos(5), Instant::from_nanos(90));
        for time in [Time::default(), Time::skewed(Skew::Ahead(hour)), Time::skewed(Skew::Behind(hour))] {
            assert_eq!(time.at(two).since(time.at(one)), two.since(one));
            assert_eq!(time.true_at(time.at(two)), two);
            assert_eq!(time.true_at(Instant::FAR), Instant::FAR);
        }
        assert_eq!(Time::skewed(Skew::Ahead(hour)).at(one).since(Time::skewed(Skew::Behind(hour)).at(one)), 2 * hour);
    }
}
