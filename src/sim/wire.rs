//! The network in virtual time: calls on their way to the downstream and back.

use std::collections::BTreeMap;
use std::time::Duration;

use super::slab::Slab;
use super::world::{Next, World};
use crate::call::{Admission, Call, Outcome, Reply, Ticket};
use crate::downstream::Downstream;
use crate::journal::{self, Sink};
use crate::queue::Token;
use crate::rng::Stream;
use crate::time::Instant;
use crate::worker::{Event, Request};

/// The downstream, and the calls that are under way.
#[derive(Debug)]
pub(super) struct Wire {
    downstream: Downstream,
    calls: Slab<Underway>,
    tickets: BTreeMap<Ticket, u32>,
    arrivals: u64,
    release_at: Instant,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
struct Underway {
    who: Who,
    call: Call,
    sent: Instant,
    timeout: Duration,
    /// What its caller will see, once that is decided.
    outcome: Option<Outcome>,
    /// Things planned that name it: it stays until the last has happened.
    planned: u8,
}

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// A worker, under this claim.
    Worker(u32, Token),
    /// An ordinary user: the place of the call in the list.
    User(u32),
}

impl Wire {
    pub(super) fn new(downstream: Downstream) -> Wire {
        Wire { downstream, calls: Slab::default(), tickets: BTreeMap::new(), arrivals: 0, release_at: Instant::FAR }
    }

    /// Calls that reached the downstream.
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }
}

impl<S: Sink> World<'_, S> {
    /// A worker calls.
    pub(super) fn call(&mut self, now: Instant, worker: u32, request: &Request) {
        let who = Who::Worker(worker, request.token);
        self.dial(now, who, request.call(worker), request.timeout);
    }

    /// A call sets out.
    pub(super) fn dial(&mut self, now: Instant, who: Who, call: Call, timeout: Duration) {
        let number = self.wire.calls.put(Underway { who, call, sent: now, timeout, outcome: None, planned: 1 });
        let at = self.pass(now);
        if at > now {
            self.calendar.plan(at, Next::Arrive(number));
        } else {
            self.arrive(now, number);
        }
    }

    /// When what sets out now on one way is there.
    fn pass(&mut self, now: Instant) -> Instant {
        let cost = &self.profile.call;
        let (work, wait) = (cost.work() / 2, cost.wait());
        self.processors.serve(now, work) + self.sample(&wait, Stream::Wire) / 2
    }

    /// It reaches the downstream, which decides what becomes of it.
    pub(super) fn arrive(&mut self, now: Instant, number: u32) {
        let call = self.wire.calls[number].call;
        let admission = journal::take(&mut self.wire.downstream, now, &call, &mut self.sink);
        self.wire.arrivals += u64::from(admission.reply != Reply::Refuse);
        if let Reply::Waits(ticket) = admission.reply {
            self.wire.tickets.insert(ticket, number);
            let underway = self.wire.calls[number];
            let at = self.timer(now, underway.sent + underway.timeout);
            self.calendar.plan(at, Next::GiveUp(number));
        } else {
            self.reply(now, number, &admission);
        }
        self.look(now);
    }

    /// What becomes of a call is decided: plans its answer, or the end of its caller's patience.
    fn reply(&mut self, now: Instant, number: u32, admission: &Admission) {
        let underway = self.wire.calls[number];
        let (outcome, at) = admission.reply.seen(underway.sent, underway.timeout);
        let at = self.timer(now, at);
        let waits = admission.reply == Reply::Silence || outcome == Outcome::TimedOut;
        if waits {
            self.calendar.plan(at, Next::GiveUp(number));
            return;
        }
        self.wire.calls[number].outcome = Some(as_carried(outcome, admission.dated, at));
        self.calendar.plan(at, Next::Leave(number));
    }

    /// The downstream's answer sets out for its caller.
    pub(super) fn leave_downstream(&mut self, now: Instant, number: u32) {
        let at = self.pass(now);
        let underway = &mut self.wire.calls[number];
        let patience = underway.sent + underway.timeout;
        if at > now && at >= patience {
            underway.outcome = Some(Outcome::TimedOut);
        }
        if at > now {
            let at = at.min(patience.max(now));
            self.calendar.plan(at, Next::Replied(number));
        } else {
            self.replied(now, number);
        }
    }

    /// Its caller has waited for long enough. One that waited in the downstream may have been answered meanwhile.
    pub(super) fn give_up(&mut self, now: Instant, number: u32) {
        let underway = &mut self.wire.calls[number];
        if underway.outcome.is_none() {
            underway.outcome = Some(Outcome::TimedOut);
            underway.planned += 1;
            self.replied(now, number);
        }
        self.let_go(number);
    }

    /// Its caller sees the answer.
    pub(super) fn replied(&mut self, now: Instant, number: u32) {
        let underway = self.wire.calls[number];
        let outcome = underway.outcome.unwrap_or(Outcome::TimedOut);
        self.let_go(number);
        match underway.who {
            Who::Worker(worker, token) => self.deliver(worker, Event::Replied { token, outcome }),
            Who::User(place) => self.inflow.answered(now, place, outcome),
        }
    }

    fn let_go(&mut self, number: u32) {
        let underway = &mut self.wire.calls[number];
        underway.planned -= 1;
        if underway.planned == 0 {
            self.wire.calls.take(number);
        }
    }

    /// Calls that waited in the downstream and do no longer.
    pub(super) fn release(&mut self, now: Instant) {
        self.wire.release_at = Instant::FAR;
        self.look(now);
    }

    /// Asks the downstream what has become of calls that wait, and when to ask again. It has none unless its queue is last in, first
    /// out.
    fn look(&mut self, now: Instant) {
        if self.wire.downstream.wake_at().is_none() && self.wire.tickets.is_empty() {
            return;
        }
        for (ticket, admission) in journal::release(&mut self.wire.downstream, now, &mut self.sink) {
            let Some(number) = self.wire.tickets.remove(&ticket) else { continue };
            self.released(now, number, &admission);
        }
        if let Some(at) = self.wire.downstream.wake_at().map(|at| at.max(now))
            && at < self.wire.release_at
        {
            self.wire.release_at = at;
            self.calendar.plan(at, Next::Release);
        }
    }

    fn released(&mut self, now: Instant, number: u32, admission: &Admission) {
        let underway = self.wire.calls[number];
        let (outcome, _) = admission.reply.seen(underway.sent, underway.timeout);
        // Who has given up is not told; who will have, is waited for by what was planned when the call arrived.
        if underway.outcome.is_none() && outcome != Outcome::TimedOut {
            self.wire.calls[number].planned += 1;
            self.reply(now, number, admission);
        }
    }
}

/// An outcome as HTTP carries it: Retry-After is in whole seconds, rounded up; as a date it counts from the answer's own, both
/// rounded down (RFC 9110 §10.2.3).
fn as_carried(outcome: Outcome, dated: bool, at: Instant) -> Outcome {
    let Outcome::Status { code, retry_after: Some(after) } = outcome else { return outcome };
    let seconds = if dated {
        let phase = at.since_start();
        (phase + after).as_secs() - phase.as_secs()
    } else {
        after.as_secs() + u64::from(after.subsec_nanos() > 0)
    };
    Outcome::Status { code, retry_after: Some(Duration::from_secs(seconds)) }
}
