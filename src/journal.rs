//! What happened, as it happened: the stream that every figure is folded from.
//!
//! Three doors, and drivers use nothing else, so that an observation cannot be forgotten in one world: [`arrive`] puts a
//! job in, [`step`] gives a worker an event, [`admit`] gives the downstream a call. Each tells the [`Sink`] what went in and
//! what came out.

use crate::call::{Admission, Call, Reply, Ticket};
use crate::downstream::Downstream;
use crate::time::Instant;
use crate::worker::{Command, Event, Worker};
use crate::workload::Job;

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// When.
    pub at: Instant,
    /// What.
    pub what: What<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// A job arrived.
    Arrived(&'a Job),
    /// A worker took an event, and asked for these commands.
    Stepped {
        /// Which worker.
        worker: u32,
        /// What it was told.
        event: &'a Event,
        /// What it asked for.
        commands: &'a [Command],
    },
    /// The downstream took a call, and will reply so.
    Admitted {
        /// The call.
        call: &'a Call,
        /// The reply, and when it is worked on.
        admission: &'a Admission,
    },
    /// A call that the downstream had let wait waits no longer.
    Released {
        /// The ticket that its reply had named.
        ticket: Ticket,
        /// The reply, and when it is worked on.
        admission: &'a Admission,
    },
}

/// Somebody who watches.
pub trait Sink {
    /// Takes note of an entry. Entries of one worker come in order of time.
    fn record(&mut self, entry: Entry<'_>);
}

/// Nobody watches.
impl Sink for () {
    fn record(&mut self, _: Entry<'_>) {}
}

/// Somebody watches, or nobody.
impl<S: Sink> Sink for Option<S> {
    fn record(&mut self, entry: Entry<'_>) {
        if let Some(sink) = self {
            sink.record(entry);
        }
    }
}

/// Somebody who is lent watches.
impl<S: Sink> Sink for &mut S {
    fn record(&mut self, entry: Entry<'_>) {
        (**self).record(entry);
    }
}

/// Two who watch.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn record(&mut self, entry: Entry<'_>) {
        self.0.record(entry);
        self.1.record(entry);
    }
}

/// The first door: a job arrives.
pub fn arrive(now: Instant, job: &Job, sink: &mut impl Sink) {
    sink.record(Entry { at: now, what: What::Arrived(job) });
}

/// The second door: a worker takes an event. Its commands are appended to `out`, which must be empty.
pub fn step(worker: &mut Worker, now: Instant, event: Event, sink: &mut impl Sink, out: &mut Vec<Command>) {
    worker.handle(now, &event, out);
    sink.record(Entry { at: now, what: What::Stepped { worker: worker.id(), event: &event, commands: out } });
}

/// The third door: the downstream takes a call.
pub fn admit(downstream: &mut Downstream, now: Instant, call: &Call, sink: &mut impl Sink) -> Reply {
    take(downstream, now, call, sink).reply
}

/// The third door with all that is known of a call, for a door that must imitate it.
pub fn take(downstream: &mut Downstream, now: Instant, call: &Call, sink: &mut impl Sink) -> Admission {
    let admission = downstream.take(now, call);
    sink.record(Entry { at: now, what: What::Admitted { call, admission: &admission } });
    admission
}

/// The third door's other side: calls that [waited](Reply::Waits) and do no longer. To be asked at
/// [`Downstream::wake_at`], and after each call.
pub fn release(downstream: &mut Downstream, now: Instant, sink: &mut impl Sink) -> Vec<(Ticket, Admission)> {
    let released = downstream.release(now);
    for (ticket, admission) in &released {
        sink.record(Entry { at: now, what: What::Released { ticket: *ticket, admission } });
    }
    released
}

/// A sink that keeps what workers were told and asked for, to replay it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tape(pub Vec<Step>);

/// One worker's step on a tape.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When.
    pub at: Instant,
    /// Which worker.
    pub worker: u32,
    /// What it was told.
    pub event: Event,
    /// What it asked for.
    pub commands: Vec<Command>,
}

impl Sink for Tape {
    fn record(&mut self, entry: Entry<'_>) {
        if let What::Stepped { worker, event, commands } = entry.what {
            self.0.push(Step { at: entry.at, worker, event: event.clone(), commands: commands.to_vec() });
        }
    }
}
