//! What comes from outside in virtual time: jobs, and ordinary users.

use std::time::Duration;

use super::wire::Who;
use super::world::{Next, World};
use crate::call::{Call, Label, Outcome};
use crate::downstream::Users;
use crate::job::JobId;
use crate::journal::{self, Sink};
use crate::metrics::UserCall;
use crate::rng::Stream;
use crate::time::{Instant, seconds};
use crate::workload::Job;

/// Most jobs in one statement, as the real producer has it.
const BATCH: usize = 1000;
/// How long the producer waits for a database that is away, as the real one does.
const PAUSE: Duration = Duration::from_millis(250);
/// The number of the first user's call: far from those of jobs.
const FIRST: u64 = 1 << 62;

/// What is still to come, and the users' calls so far.
#[derive(Debug)]
pub(super) struct Inflow<'a> {
    jobs: &'a [Job],
    /// Jobs in the store.
    put_in: usize,
    /// Jobs in the statement that is under way.
    sending: usize,
    users: Option<&'a Users>,
    calls: Vec<UserCall>,
    planned: Instant,
}

impl<'a> Inflow<'a> {
    pub(super) fn new(jobs: &'a [Job], users: Option<&'a Users>) -> Inflow<'a> {
        Inflow { jobs, put_in: 0, sending: 0, users, calls: Vec::new(), planned: Instant::START }
    }

    /// How many jobs there are in all.
    pub(super) fn jobs(&self) -> u64 {
        self.jobs.len() as u64
    }

    /// A user has an answer, or has given up.
    pub(super) fn answered(&mut self, now: Instant, place: u32, outcome: Outcome) {
        let call = &mut self.calls[place as usize];
        (call.answered, call.outcome) = (Some(now), Some(outcome));
    }

    /// The users' calls; those that end later have no answer.
    pub(super) fn leave(self, now: Instant) -> Vec<UserCall> {
        debug_assert!(self.calls.iter().all(|call| call.answered.is_none_or(|at| at <= now)));
        self.calls
    }
}

impl<S: Sink> World<'_, S> {
    /// The first job and the first user are on their way.
    pub(super) fn begin(&mut self) {
        self.plan_load(Instant::START);
        self.plan_visit();
    }

    fn plan_load(&mut self, now: Instant) {
        if let Some(next) = self.inflow.jobs.get(self.inflow.put_in) {
            let at = self.timer(now, next.at);
            self.calendar.plan(at, Next::Load);
        }
    }

    /// The jobs that have arrived are sent to the store, at most a batch of them; the next wait until these are there.
    pub(super) fn load(&mut self, now: Instant) {
        if self.leaving.is_some() {
            return;
        }
        if self.database.is_away(now) {
            let at = self.timer(now, now + PAUSE);
            return self.calendar.plan(at, Next::Load);
        }
        let rest = &self.inflow.jobs[self.inflow.put_in..];
        self.inflow.sending = rest.iter().take(BATCH).take_while(|job| job.at <= now).count();
        let cost = self.profile.insert;
        let done = self.processors.serve(now, cost.work() + cost.more(self.inflow.sending, 0));
        let at = done + self.sample(&cost.wait(), Stream::Store);
        if at > now {
            self.calendar.plan(at, Next::Loaded);
        } else {
            self.loaded(now);
        }
    }

    /// They are there.
    pub(super) fn loaded(&mut self, now: Instant) {
        let from = self.inflow.put_in;
        let until = from + self.inflow.sending;
        for job in &self.inflow.jobs[from..until] {
            journal::arrive(now, job, &mut self.sink);
            let id = self.database.store.insert(now, job.group, job.malformed);
            debug_assert_eq!(id, job.id, "jobs are numbered in order of arrival");
        }
        (self.inflow.put_in, self.inflow.sending) = (until, 0);
        if self.listens() {
            self.ring();
        }
        self.plan_load(now);
    }

    fn plan_visit(&mut self) {
        let Some(users) = self.inflow.users else { return };
        let number = JobId(FIRST + self.inflow.calls.len() as u64);
        let unit = self.seed.draw(Stream::Users, number, 1).unit();
        self.inflow.planned = self.inflow.planned + seconds(-(1.0 - unit).ln() / users.rate);
        let at = self.timer(self.calendar.now(), self.inflow.planned);
        self.calendar.plan(at, Next::Visit);
    }

    /// A Poisson process: each gap is drawn by its number, so that users come at the same times in every world.
    pub(super) fn visit(&mut self, now: Instant) {
        let Some(users) = self.inflow.users.filter(|_| self.leaving.is_none()) else { return };
        let place = self.inflow.calls.len() as u32;
        let number = JobId(FIRST + u64::from(place));
        self.inflow.calls.push(UserCall { number, planned: self.inflow.planned, answered: None, outcome: None });
        let call = Call { route: Label::of(&users.route), caller: Label::of("users"), ..Call::new(number, 1, "{}") };
        self.dial(now, Who::User(place), call, users.timeout);
        self.plan_visit();
    }
}
