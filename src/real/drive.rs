//! The driver: one task around one pure worker.
//!
//! It is a loop and a `match`. Whatever comes first becomes the worker's next event; each of its commands becomes a future
//! whose result is an event again. It decides nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};

use super::bell::Bell;
use super::clock::Clock;
use super::handler::Handler;
use super::pg::Store;
use crate::journal::{self, Tape};
use crate::metrics::{Recorder, Tally};
use crate::time::Instant;
use crate::worker::{Command, Event, Operation, Worker};

/// What all workers of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) handler: Handler,
    pub(super) live: Arc<Live>,
    pub(super) bell: Bell,
    /// Told when as many jobs have ended as there are.
    pub(super) all_ended: Notify,
    pub(super) jobs: u64,
}

/// How a run stands, for whoever watches it. Counters only: watching costs the run nothing.
#[derive(Debug, Default)]
pub struct Live {
    /// Calls sent.
    pub sent: AtomicU64,
    /// Jobs completed.
    pub completed: AtomicU64,
    /// Jobs discarded.
    pub discarded: AtomicU64,
    /// Nanoseconds into the run.
    pub elapsed: AtomicU64,
}

impl Live {
    /// Jobs that have ended.
    pub fn ended(&self) -> u64 {
        self.completed.load(Ordering::Relaxed) + self.discarded.load(Ordering::Relaxed)
    }

    /// Back to zero, for the next run.
    pub fn reset(&self) {
        for counter in [&self.sent, &self.completed, &self.discarded, &self.elapsed] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Workers work.
    Run,
    /// Workers finish what they have.
    Drain,
    /// Workers stop where they are.
    Cut,
}

/// Lives a worker's life; returns what was recorded of it.
pub(super) async fn drive(
    mut worker: Worker,
    shared: Arc<Shared>,
    mut phase: watch::Receiver<Phase>,
    tape: bool,
) -> (Recorder, Option<Tape>) {
    let mut sink = (Recorder::default(), tape.then(Tape::default));
    let mut pending: FuturesUnordered<BoxFuture<'static, Event>> = FuturesUnordered::new();
    // Answers that are there already.
    let mut answers = VecDeque::new();
    let mut commands = Vec::new();
    let mut event = Event::Started;
    loop {
        let before = Published::of(sink.0.tally());
        journal::step(&mut worker, shared.clock.now(), event, &mut sink, &mut commands);
        shared.publish(before, sink.0.tally());
        for command in commands.drain(..) {
            match command {
                Command::Remind { after } => after.iter().for_each(|after| shared.bell.remind(shared.clock.now(), *after)),
                Command::Call(request) => match shared.handler.at_once(&request) {
                    Some(outcome) => answers.push_back(Event::Replied { token: request.token, outcome }),
                    None => pending.push(Box::pin(carry_out(shared.clone(), worker.id(), Command::Call(request)))),
                },
                command => pending.push(Box::pin(carry_out(shared.clone(), worker.id(), command))),
            }
        }
        if worker.is_idle() {
            return sink;
        }
        if let Some(answer) = answers.pop_front() {
            event = answer;
            continue;
        }
        // In this order: what has happened comes before what is due, so that replies of one instant are settled together.
        event = tokio::select! {
            biased;
            phase = next_phase(&mut phase) => match phase {
                Phase::Cut => return sink,
                Phase::Run | Phase::Drain => Event::Drain,
            },
            Some(event) = pending.next() => event,
            () = shared.bell.heard(), if worker.has_room() => Event::Notified,
            () = shared.clock.sleep_until(worker.wake_at().unwrap_or(Instant::FAR)) => Event::Woke,
        };
    }
}

async fn next_phase(phase: &mut watch::Receiver<Phase>) -> Phase {
    match phase.changed().await {
        Ok(()) => *phase.borrow_and_update(),
        Err(_) => Phase::Cut,
    }
}

/// The table of commands: what each is in the real world, and what comes back.
async fn carry_out(shared: Arc<Shared>, worker: u32, command: Command) -> Event {
    let store = &shared.store;
    match command {
        Command::Claim { limit, lease } => match store.claim(worker, limit, lease).await {
            Ok(claimed) => Event::Claimed(claimed),
            Err(_) => Event::Failed(Operation::Claim),
        },
        Command::Call(request) => {
            let outcome = shared.handler.handle(worker, &request).await;
            Event::Replied { token: request.token, outcome }
        }
        Command::Settle { number, settlements } => match store.settle(&settlements).await {
            Ok(settled) => Event::Settled(settled),
            Err(_) => Event::Failed(Operation::Settle { number, settlements }),
        },
        Command::Extend { claims, lease } => match store.extend(&claims, lease).await {
            Ok(lost) => Event::Extended { lost },
            Err(_) => Event::Failed(Operation::Extend),
        },
        // The driver rings the bell itself; there is no answer to wait for.
        Command::Remind { .. } => Event::Woke,
        Command::Reap => match store.reap().await {
            Ok((returned, discarded)) => Event::Reaped { returned, discarded },
            Err(_) => Event::Failed(Operation::Reap),
        },
    }
}

/// A tally's figures as they were last published.
struct Published {
    sent: u64,
    completed: u64,
    discarded: u64,
}

impl Published {
    fn of(tally: &Tally) -> Published {
        Published { sent: tally.sent, completed: tally.completed, discarded: tally.discarded + tally.reaped }
    }
}

impl Shared {
    fn publish(&self, before: Published, tally: &Tally) {
        self.live.elapsed.fetch_max(self.clock.now().as_nanos(), Ordering::Relaxed);
        let now = Published::of(tally);
        self.live.sent.fetch_add(now.sent - before.sent, Ordering::Relaxed);
        let ended = now.completed - before.completed + now.discarded - before.discarded;
        if ended > 0 {
            self.live.completed.fetch_add(now.completed - before.completed, Ordering::Relaxed);
            self.live.discarded.fetch_add(now.discarded - before.discarded, Ordering::Relaxed);
            if self.live.ended() >= self.jobs {
                self.all_ended.notify_one();
            }
        }
    }
}
