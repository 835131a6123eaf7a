//! What a service knows at each moment: the model, and what it has done so far. One short lock, never held across an await.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::sync::{Notify, oneshot};

use super::Setup;
use super::log::{Line, Log};
use crate::call::{Admission, Call, Outcome, Reply, Ticket};
use crate::downstream::Downstream;
use crate::journal;
use crate::metrics::{Services, histogram, record};
use crate::real::clock::Clock;
use crate::time::Instant;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    /// The faults or the timeline were changed by hand.
    pub(super) changed: Notify,
    /// Somebody waits in a last-in-first-out queue.
    rouse: Notify,
    log: Mutex<Option<Log>>,
    has_log: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) downstream: Downstream,
    pub(super) arrivals: u64,
    pub(super) lateness: Histogram<u64>,
    pub(super) late: Duration,
    pub(super) services: Services,
    keep: bool,
    /// Replies by what they say, as their callers see it.
    pub(super) outcomes: Vec<(Outcome, u64)>,
    /// Callers that left before they had an answer.
    pub(super) gone: u64,
    /// Requests that were too large or too slow for the model to see.
    pub(super) bad_requests: u64,
    pub(super) connections: u64,
    pub(super) connections_turned_away: u64,
    /// The timeline waits for the first request.
    pub(super) awaits_first: bool,
    /// A person has changed faults or timeline.
    pub(super) steered: bool,
    waiting: BTreeMap<Ticket, oneshot::Sender<Admission>>,
}

impl Shared {
    pub(super) fn new(mut downstream: Downstream, clock: Clock, setup: &Setup, log: Option<Log>) -> Shared {
        if setup.on_first_request {
            downstream.freeze(Instant::START);
        }
        let state = State {
            downstream,
            arrivals: 0,
            lateness: histogram(),
            late: Duration::ZERO,
            services: Services::default(),
            keep: setup.keep,
            outcomes: Vec::new(),
            gone: 0,
            bad_requests: 0,
            connections: 0,
            connections_turned_away: 0,
            awaits_first: setup.on_first_request,
            steered: false,
            waiting: BTreeMap::new(),
        };
        let (changed, rouse, has_log) = (Notify::new(), Notify::new(), log.is_some());
        Shared { clock, changed, rouse, log: Mutex::new(log), has_log, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    /// Whether requests are logged.
    pub(super) fn logs(&self) -> bool {
        self.has_log
    }

    /// Writes out what is logged, and ends the log.
    pub(super) fn close_log(&self) {
        drop(self.log.lock().expect("nobody panics while holding it").take());
    }

    /// Whether nobody listens now, and when that changes.
    pub(super) fn refuses(&self) -> (bool, Option<Instant>) {
        let state = self.lock();
        state.downstream.refuses(self.clock.now())
    }

    /// Counts a connection while it is held.
    pub(super) fn open(self: &Arc<Shared>) -> Open {
        self.lock().connections += 1;
        Open(self.clone())
    }

    /// Hands a request to the model; `call` makes a call of the number of its arrival.
    pub(super) fn admit(self: &Arc<Shared>, call: impl FnOnce(u64) -> Call, path: Option<String>) -> (Visit, Admission) {
        let mut state = self.lock();
        let state = &mut *state;
        state.arrivals += 1;
        let call = call(state.arrivals);
        // Under the lock, so that arrivals come in order of time.
        let now = self.clock.now();
        if std::mem::take(&mut state.awaits_first) {
            state.downstream.resume(now);
            self.changed.notify_one();
        }
        let mut sink = state.keep.then_some(&mut state.services);
        let admission = journal::take(&mut state.downstream, now, &call, &mut sink);
        if let Reply::Waits(_) = admission.reply {
            self.rouse.notify_one();
        } else {
            count(&mut state.outcomes, &admission.reply);
        }
        let line = path.map(|path| Line { at: now, call, path, reply: admission.reply, left: None });
        (Visit { shared: self.clone(), arrived: now, done: false, line }, admission)
    }

    /// What becomes of a call that waits.
    pub(super) async fn released(&self, ticket: Ticket) -> Admission {
        let (sender, receiver) = oneshot::channel();
        self.lock().waiting.insert(ticket, sender);
        self.rouse.notify_one();
        // A reset forgets those that wait.
        let forgotten = || Admission::idle(Reply::Answer { outcome: Outcome::status(503), at: self.clock.now() });
        receiver.await.unwrap_or_else(|_| forgotten())
    }

    /// Tells those that wait in a last-in-first-out queue what became of them, in time.
    pub(super) async fn usher(&self) {
        loop {
            let wake = {
                let mut state = self.lock();
                let state = &mut *state;
                let mut sink = state.keep.then_some(&mut state.services);
                for (ticket, admission) in journal::release(&mut state.downstream, self.clock.now(), &mut sink) {
                    count(&mut state.outcomes, &admission.reply);
                    if let Some(sender) = state.waiting.remove(&ticket) {
                        let _ = sender.send(admission);
                    }
                }
                state.downstream.wake_at()
            };
            tokio::select! {
                () = self.rouse.notified() => {}
                () = self.clock.sleep_until(wake.unwrap_or(Instant::FAR)) => {}
            }
        }
    }
}

impl State {
    /// Back to the beginning, counts and all.
    pub(super) fn reset(&mut self, now: Instant) {
        self.downstream.reset(now);
        self.waiting.clear();
        self.outcomes.clear();
        self.lateness.reset();
        (self.arrivals, self.gone, self.bad_requests, self.late) = (0, 0, 0, Duration::ZERO);
    }
}

fn count(outcomes: &mut Vec<(Outcome, u64)>, reply: &Reply) {
    let outcome = match *reply {
        Reply::Answer { outcome: Outcome::Status { code, .. }, .. }
        | Reply::Slowly { outcome: Outcome::Status { code, .. }, .. } => Outcome::status(code),
        Reply::Answer { outcome, .. } | Reply::Slowly { outcome, .. } => outcome,
        Reply::Silence | Reply::Waits(_) => Outcome::TimedOut,
        Reply::Refuse => Outcome::Refused,
    };
    match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
        Some((_, count)) => *count += 1,
        None => outcomes.push((outcome, 1)),
    }
}

/// A connection that is held.
#[derive(Debug)]
pub(super) struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().connections -= 1;
    }
}

/// A request under way. Dropped before it was answered, its caller has left.
#[derive(Debug)]
pub(super) struct Visit {
    shared: Arc<Shared>,
    arrived: Instant,
    done: bool,
    line: Option<Line>,
}

impl Visit {
    /// A call that waited has its reply.
    pub(super) fn reply(&mut self, admission: &Admission) {
        if let Some(line) = &mut self.line {
            line.reply = admission.reply;
        }
    }

    /// The answer leaves now, and was meant to at `meant`.
    pub(super) fn answered(&mut self, meant: Instant) {
        let now = self.shared.clock.now();
        let late = now.since(meant.max(self.arrived));
        let mut state = self.shared.lock();
        record(&mut state.lateness, late);
        state.late += late;
        drop(state);
        self.done = true;
        if let Some(line) = &mut self.line {
            line.left = Some(now);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.done {
            self.shared.lock().gone += 1;
        }
        if let Some(line) = self.line.take()
            && let Some(log) = &*self.shared.log.lock().expect("nobody panics while holding it")
        {
            log.write(line);
        }
    }
}
