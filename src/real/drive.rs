//! The driver: one task around one pure worker.
//!
//! It is a loop and a `match`. Whatever comes first becomes the worker's next event; each of its commands becomes a future
//! whose result is an event again. It decides nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Notify, watch};

use super::bell::Bell;
use super::chaos::{Order, Reins};
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

/// What was recorded of a worker's life.
pub(super) type Life = (Recorder, Option<Tape>);

/// How a worker's life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It had nothing more to do, or was cut.
    Done,
    /// It was killed; its place is filled again at this time, if ever.
    Killed { back: Option<Instant> },
    /// It ended in order, to be followed by one with another clock.
    Followed,
}

/// Lives a worker's life; returns what was recorded of it.
pub(super) async fn drive(worker: Worker, shared: Arc<Shared>, phase: watch::Receiver<Phase>, tape: bool) -> Life {
    drive_on(worker, shared, phase, tape, &mut Reins::none()).await.0
}

/// The same under chaos: the reins say what befalls it.
pub(super) async fn drive_on(
    mut worker: Worker,
    shared: Arc<Shared>,
    mut phase: watch::Receiver<Phase>,
    tape: bool,
    reins: &mut Reins,
) -> (Life, Ended) {
    let mut sink = (Recorder::default(), tape.then(Tape::default));
    let mut pending: FuturesUnordered<BoxFuture<'static, Event>> = FuturesUnordered::new();
    // Answers that are there already, and what came in while the worker stood still.
    let mut kept: VecDeque<Event> = VecDeque::new();
    let mut commands = Vec::new();
    let mut event = Event::Started;
    loop {
        let before = Published::of(sink.0.tally());
        let now = shared.clock.now();
        let mut watching = reins.time.watching(now, &mut sink);
        journal::step(&mut worker, reins.time.at(now), event, &mut watching, &mut commands);
        shared.publish(before, sink.0.tally());
        for command in commands.drain(..) {
            match command {
                Command::Remind { after } => after.iter().for_each(|after| shared.bell.remind(shared.clock.now(), *after)),
                Command::Call(request) => match shared.handler.at_once(&request) {
                    Some(outcome) => kept.push_back(Event::Replied { token: request.token, outcome }),
                    None => pending.push(Box::pin(carry_out(shared.clone(), worker.id(), Command::Call(request)))),
                },
                command => pending.push(Box::pin(carry_out(shared.clone(), worker.id(), command))),
            }
        }
        if worker.is_idle() {
            return (sink, if reins.is_followed() { Ended::Followed } else { Ended::Done });
        }
        if let Some(first) = kept.pop_front() {
            event = first;
            continue;
        }
        let wake_at = reins.time.true_at(worker.wake_at().unwrap_or(Instant::FAR));
        // In this order: what has happened comes before what is due, so that replies of one instant are settled together.
        event = tokio::select! {
            biased;
            phase = next_phase(&mut phase) => match phase {
                Phase::Cut => return (sink, Ended::Done),
                Phase::Run | Phase::Drain => Event::Drain,
            },
            order = reins.order(worker.id()) => match order {
                Order::Die { back } => return (die(sink, &shared), Ended::Killed { back }),
                Order::Pause { until } => match stand_still(until, &shared, &mut phase, &mut pending, &mut kept, reins, worker.id()).await {
                    Stood::On => Event::Woke,
                    Stood::Cut => return (sink, Ended::Done),
                    Stood::Dead { back } => return (die(sink, &shared), Ended::Killed { back }),
                },
                Order::Follow => Event::Drain,
            },
            Some(event) = pending.next() => event,
            () = shared.bell.heard(), if worker.has_room() => Event::Notified,
            () = shared.clock.sleep_until(wake_at) => Event::Woke,
        };
    }
}

/// How standing still came to an end.
enum Stood {
    On,
    Cut,
    Dead { back: Option<Instant> },
}

/// Stands still until then, or until the run is over. What it has asked for goes on, as a stopped process's requests do; the answers wait.
async fn stand_still(
    until: Instant,
    shared: &Shared,
    phase: &mut watch::Receiver<Phase>,
    pending: &mut FuturesUnordered<BoxFuture<'static, Event>>,
    kept: &mut VecDeque<Event>,
    reins: &mut Reins,
    worker: u32,
) -> Stood {
    loop {
        tokio::select! {
            biased;
            phase = next_phase(phase) => {
                if phase == Phase::Cut {
                    return Stood::Cut;
                }
                kept.push_back(Event::Drain);
                return Stood::On;
            }
            order = reins.order(worker) => match order {
                Order::Die { back } => return Stood::Dead { back },
                // It stands still already; and a clock that it can't read can't be wrong.
                Order::Pause { .. } | Order::Follow => {}
            },
            Some(event) = pending.next() => kept.push_back(event),
            () = shared.clock.sleep_until(until) => return Stood::On,
        }
    }
}

/// What was under way is dropped where it is: connections break off, and the database may have done what it was asked, or not.
fn die(mut sink: Life, shared: &Shared) -> Life {
    let held = sink.0.die();
    shared.store.abandon(&held);
    // It may have been told of work that nobody else knows of.
    shared.bell.remind(shared.clock.now(), Duration::ZERO);
    sink
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
