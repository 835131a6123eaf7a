//! The driver in virtual time: a loop and a `match`.
//!
//! What is planned next becomes somebody's next event; each command of a worker becomes a plan. It decides nothing. How long things
//! take is the [`Profile`]'s, and what they do is the core's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bell::Bell;
use super::calendar::Calendar;
use super::database::Database;
use super::inflow::Inflow;
use super::post::Post;
use super::station::Processors;
use super::wire::Wire;
use super::{Error, Plan};
use crate::dist::Dist;
use crate::downstream::Downstream;
use crate::job::JobId;
use crate::journal::Sink;
use crate::metrics::{Blow, End, UserCall};
use crate::policy;
use crate::profile::Profile;
use crate::rng::{Draw, Seed, Stream};
use crate::scenario::chaos::{self, Strike};
use crate::time::Instant;
use crate::worker::{Command, Event, Wait, Worker};
use crate::workload::Job;

/// Something to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A worker's time has come.
    Wake(u32),
    /// A worker hears that there is work.
    Notify(u32),
    /// The bell's timer runs.
    Ring,
    /// The store does what it was asked.
    Effect(u32),
    /// The store's answer arrives.
    Answer(u32),
    /// A call reaches the downstream.
    Arrive(u32),
    /// The downstream sends its answer.
    Leave(u32),
    /// The answer reaches its caller.
    Replied(u32),
    /// A caller has waited for long enough.
    GiveUp(u32),
    /// The downstream has something to say about calls that wait.
    Release,
    /// Jobs arrive.
    Load,
    /// Jobs are in the store.
    Loaded,
    /// An ordinary user calls.
    Visit,
    /// A blow of chaos falls.
    Strike,
    /// A post is filled again.
    Fill(u32),
    /// A worker that stood still goes on.
    Resume(u32),
    /// Nobody waits any longer.
    Horizon,
}

/// How often in a row things may happen at one instant, for each job and worker, before the run is given up: time does not move on. A
/// job that spends the most retries there may be, 1000, at once takes no more.
const STANDSTILL: u64 = 10_000;
/// Most calls of a run, and for each job: more than any policy makes that ends, and some gigabytes of records.
const MOST: u64 = 10_000_000;
const MOST_PER_JOB: u64 = 10_000;
/// How many things happen between two looks at whether to stop.
const LOOK: u64 = 1024;

/// A run in its course.
pub(super) struct World<'a, S> {
    pub(super) seed: Seed,
    pub(super) profile: &'a Profile,
    pub(super) sink: S,
    pub(super) calendar: Calendar<Next>,
    pub(super) processors: Processors,
    pub(super) database: Database,
    pub(super) wire: Wire,
    pub(super) inflow: Inflow<'a>,
    pub(super) bell: Bell,
    pub(super) posts: Vec<Post>,
    /// Posts whose worker has something left to do.
    undone: usize,
    pub(super) recruits: Recruits<'a>,
    pub(super) strikes: Vec<Strike>,
    pub(super) blows: Vec<Blow>,
    /// Workers that were killed.
    pub(super) died: Vec<u32>,
    commands: Vec<Command>,
    listens: bool,
    pub(super) leaving: Option<End>,
    /// Of timers, calls and statements. The one place that keeps generators: what they are for has no key but the order of events, and
    /// that is always the same.
    draws: [Draw; 3],
    grain: u64,
    late: Dist,
    events: u64,
    /// Things to come, summed over all events.
    pending: u64,
}

/// How a run went, beside what was recorded.
pub(super) struct Went {
    pub(super) end: End,
    pub(super) ended: Instant,
    pub(super) database: Database,
    pub(super) users: Vec<UserCall>,
    pub(super) arrivals: u64,
    pub(super) events: u64,
    /// How many things were to come, on average.
    pub(super) pending: usize,
    pub(super) blows: Vec<Blow>,
    pub(super) died: Vec<u32>,
}

/// What workers are made of.
pub(super) struct Recruits<'a> {
    plan: Plan<'a>,
    state: policy::Shared,
}

impl Recruits<'_> {
    /// A new worker. One with a clock of its own can't read what others wrote down by theirs.
    pub(super) fn worker(&self, id: u32, ahead: Duration) -> Worker {
        let Plan { scenario, policy, seed, .. } = self.plan;
        let worker = Worker::new(id, scenario.workers, scenario.downstream.client_timeout, policy.clone(), seed);
        if ahead.is_zero() { worker.sharing(&self.state) } else { worker }
    }
}

impl<'a, S: Sink> World<'a, S> {
    pub(super) fn new(plan: &Plan<'a>, jobs: &'a [Job], sink: S) -> World<'a, S> {
        let scenario = plan.scenario;
        let settings = scenario.workers;
        let recruits = Recruits { plan: *plan, state: policy::Shared::default() };
        let post = |id| Post::of(recruits.worker(id, Duration::ZERO), Duration::ZERO);
        World {
            seed: plan.seed,
            profile: plan.profile,
            sink,
            calendar: Calendar::default(),
            processors: Processors::new(plan.profile.processors),
            database: Database::new(scenario, plan.policy, jobs.len()),
            wire: Wire::new(Downstream::new(scenario.downstream.clone(), plan.seed)),
            inflow: Inflow::new(jobs, scenario.downstream.users.as_ref()),
            bell: Bell::new(settings.count),
            posts: (0..settings.count).map(post).collect(),
            undone: settings.count as usize,
            strikes: chaos::plan(&scenario.chaos, settings.count, scenario.horizon, plan.seed),
            blows: Vec::new(),
            died: Vec::new(),
            recruits,
            commands: Vec::new(),
            listens: matches!(settings.wait, Wait::Listen { .. }),
            leaving: None,
            draws: [Stream::Timer, Stream::Wire, Stream::Store].map(|stream| plan.seed.draw(stream, JobId(0), 0)),
            grain: crate::time::nanos(plan.profile.timer.grain()),
            late: plan.profile.timer.late(),
            events: 0,
            pending: 0,
        }
    }

    /// Lets the run take its course, until every job has ended, the horizon has come, or somebody says stop.
    pub(super) fn play(mut self, horizon: Instant, stop: &AtomicBool) -> Result<Went, Error> {
        self.calendar.plan(horizon, Next::Horizon);
        for place in 0..self.posts.len() as u32 {
            self.step(place, Event::Started);
        }
        self.begin();
        self.threaten();
        let patience = STANDSTILL * (self.inflow.jobs() + self.posts.len() as u64);
        let most = MOST.saturating_add(MOST_PER_JOB.saturating_mul(self.inflow.jobs()));
        let mut still = 0;
        let mut last = Instant::START;
        while self.undone > 0 || self.leaving.is_none() {
            let Some((now, next)) = self.calendar.take() else { break };
            self.events += 1;
            self.pending += self.calendar.len() as u64;
            still = if now > last { 0 } else { still + 1 };
            last = now;
            if still > patience {
                return Err(Error::Standstill { at: now });
            }
            if self.wire.arrivals() > most {
                return Err(Error::Crawl { at: now, calls: self.wire.arrivals(), jobs: self.inflow.jobs() });
            }
            if self.events.is_multiple_of(LOOK) && self.leaving.is_none() && stop.load(Ordering::Relaxed) {
                self.leave(End::Stopped);
            }
            self.happen(now, next);
            if self.leaving.is_none() && self.database.all_ended(self.inflow.jobs()) {
                self.leave(End::Finished);
            }
        }
        let now = self.calendar.now();
        let users = self.inflow.leave(now);
        Ok(Went {
            end: self.leaving.unwrap_or(End::Finished),
            ended: now,
            arrivals: self.wire.arrivals(),
            database: self.database,
            users,
            events: self.events,
            blows: self.blows,
            died: self.died,
            pending: (self.pending / self.events.max(1)) as usize,
        })
    }

    fn happen(&mut self, now: Instant, next: Next) {
        match next {
            Next::Wake(worker) => self.wake(now, worker),
            Next::Notify(worker) => self.notify(worker),
            Next::Ring => self.due(now),
            Next::Effect(operation) => self.effect(now, operation),
            Next::Answer(operation) => self.answer(operation),
            Next::Arrive(call) => self.arrive(now, call),
            Next::Leave(call) => self.leave_downstream(now, call),
            Next::Replied(call) => self.replied(now, call),
            Next::GiveUp(call) => self.give_up(now, call),
            Next::Release => self.release(now),
            Next::Load => self.load(now),
            Next::Loaded => self.loaded(now),
            Next::Visit => self.visit(now),
            Next::Strike => self.strike(now),
            Next::Fill(place) => self.fill(now, place),
            Next::Resume(place) => self.resume(place),
            Next::Horizon => {
                if self.leaving.is_none() {
                    self.leave(End::Horizon);
                }
            }
        }
    }

    /// Nothing new begins; workers finish what they have, and who stood still goes on.
    fn leave(&mut self, end: End) {
        self.leaving = Some(end);
        for place in 0..self.posts.len() as u32 {
            self.resume(place);
            let post = &mut self.posts[place as usize];
            if post.empty_until.is_some() {
                post.done = true;
                self.undone -= 1;
            } else {
                self.step(place, Event::Drain);
            }
        }
    }

    /// What a worker has asked for comes back to it; if it is not there any more, to nobody.
    pub(super) fn deliver(&mut self, worker: u32, event: Event) {
        let place = worker % self.posts.len() as u32;
        if self.posts[place as usize].worker.id() == worker {
            self.step(place, event);
        }
    }

    /// The one door to a worker.
    pub(super) fn step(&mut self, place: u32, event: Event) {
        let now = self.calendar.now();
        let post = &mut self.posts[place as usize];
        if !post.is_up() {
            if post.still_until.is_some() {
                post.kept.push(event);
            }
            return;
        }
        let mut commands = std::mem::take(&mut self.commands);
        post.step(now, event, &mut self.sink, &mut commands);
        let (id, listens) = (post.worker.id(), post.listens());
        if post.is_done() && !post.done && self.leaving.is_some() {
            post.done = true;
            self.undone -= 1;
        }
        for command in commands.drain(..) {
            self.carry_out(now, id, command);
        }
        self.commands = commands;
        self.plan_wake(now, place);
        if self.bell.moved(place, listens) {
            self.calendar.plan(now, Next::Notify(place));
        }
        if self.posts[place as usize].next_ahead.is_some() {
            self.relieved(place);
        }
    }

    /// The table of commands: what each is in virtual time.
    fn carry_out(&mut self, now: Instant, worker: u32, command: Command) {
        match command {
            Command::Call(request) => self.call(now, worker, &request),
            Command::Remind { after } => after.iter().for_each(|after| self.remind(now, *after)),
            Command::Claim { .. } | Command::Settle { .. } | Command::Extend { .. } | Command::Reap => {
                self.ask(now, worker, command);
            }
        }
    }

    fn plan_wake(&mut self, now: Instant, place: u32) {
        let Some(at) = self.posts[place as usize].wake_at() else { return };
        if at < self.posts[place as usize].woken {
            self.posts[place as usize].woken = at.max(now);
            let runs = self.timer(now, at);
            self.calendar.plan(runs, Next::Wake(place));
        }
    }

    /// A worker may have changed its mind since: then it sleeps on.
    fn wake(&mut self, now: Instant, place: u32) {
        let post = &mut self.posts[place as usize];
        if post.woken > now || !post.is_up() {
            return;
        }
        post.woken = Instant::FAR;
        match post.wake_at() {
            Some(at) if at <= now => self.step(place, Event::Woke),
            _ => self.plan_wake(now, place),
        }
    }

    /// Whether the store tells of new jobs.
    pub(super) fn listens(&self) -> bool {
        self.listens
    }

    /// When a timer that is set for `at` runs; one whose time has come does so now.
    pub(super) fn timer(&mut self, now: Instant, at: Instant) -> Instant {
        if at <= now {
            return now;
        }
        let late = self.late;
        self.rounded(at) + self.sample(&late, Stream::Timer)
    }

    /// The next time from `at` on at which timers run.
    pub(super) fn rounded(&self, at: Instant) -> Instant {
        match self.grain {
            0 | 1 => at,
            grain => Instant::from_nanos(at.as_nanos().div_ceil(grain).saturating_mul(grain)),
        }
    }

    /// Draws a time that a part takes.
    pub(super) fn sample(&mut self, dist: &Dist, stream: Stream) -> Duration {
        let draw = match stream {
            Stream::Timer => 0,
            Stream::Wire => 1,
            _ => 2,
        };
        dist.sample(&mut self.draws[draw])
    }
}
