//! What does a worker do next? A pure state machine: events in, commands out, `now` handed in.
//!
//! A [`Worker`] is one consumer process. It keeps up to `slots` attempts under way, and asks the store for one thing of a
//! kind at a time: while a claim is out it does not claim, while a settle is out it collects settlements for the next one, and it settles
//! at the end of an instant, when all replies of that instant are in. So batches form by themselves under load and nothing
//! waits when there is none.
//!
//! Idle workers are not all woken for one job. Whoever schedules a retry, or leaves one behind, asks for a reminder when it is due
//! ([`Command::Remind`]); one worker that has room is told, and one whose claim came back full has the next one told.
//!
//! ```text
//!  each slot:   free ──Claimed──► calling ──Replied──► settling ──Settled──► free
//!                         └► held ──┘  the policy's breaker is open or its rate used up: asked again when it says
//!  claims:      idle ──claim_at has come, a slot is free──► asked ──Claimed──► idle
//!               full batch: claim again at once · less: wait as `Wait` says
//!  leases:      every third of the lease: Extend what is under way
//!  reaping:     every half of the lease: Reap what others left behind
//! ```
//! What a policy shares between jobs (budget, breaker, rate) is in a [`Guard`] that the worker owns; scopes wider than a worker are
//! in a handle that the driver gives to all of its workers ([`Worker::sharing`]).
//!
//! It knows no tokio, no Postgres and no HTTP. [`Worker::wake_at`] replaces all timers: the driver asks after each `handle`
//! and sends `Woke` when the time has come.

mod command;
mod event;
mod settings;

use std::time::Duration;

pub use command::{Command, Request};
pub use event::{Event, Operation};
pub use settings::{Settings, Wait};

use crate::call::Outcome;
use crate::job::{JobId, Memory};
use crate::policy::{ClockBase, Decision, Guard, Policy, Shared};
use crate::queue::{Claim, Claimed, How, Settled, Settlement, Token, Tokens};
use crate::rng::{Seed, Stream};
use crate::time::Instant;

/// The wait after the first failure of the store; doubles up to [`LONGEST_PAUSE`], with equal jitter.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// One worker in the course of a run.
#[derive(Debug)]
pub struct Worker {
    id: u32,
    settings: Settings,
    timeout: Duration,
    policy: Policy,
    seed: Seed,
    guard: Guard,
    underway: Tokens<Attempt>,
    /// Attempts that may not call yet, and when to ask again.
    held: Vec<(Instant, Request)>,
    pending: Vec<Settlement>,
    /// A settlement that may or may not have been carried out, and its number: to be sent again as it was.
    unsure: Option<(u64, Vec<Settlement>)>,
    settled_so_far: u64,
    /// How many jobs the claim that is out asked for.
    claiming: Option<u32>,
    settling: bool,
    extending: bool,
    draining: bool,
    claim_at: Instant,
    /// It was told of work while a claim was out that may not have seen it.
    told: bool,
    settle_at: Instant,
    extend_at: Instant,
    reap_at: Instant,
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    job: JobId,
    memory: Memory,
    retry_after: Option<Duration>,
    claimed: Instant,
}

impl Worker {
    /// Worker number `id` (from 0), before its `Started`.
    pub fn new(id: u32, settings: Settings, timeout: Duration, policy: Policy, seed: Seed) -> Worker {
        Worker {
            id,
            settings,
            timeout,
            policy,
            seed,
            guard: Guard::new(seed, id, Shared::default()),
            underway: Tokens::default(),
            held: Vec::new(),
            pending: Vec::new(),
            unsure: None,
            settled_so_far: 0,
            claiming: None,
            settling: false,
            extending: false,
            draining: false,
            claim_at: Instant::FAR,
            told: false,
            settle_at: Instant::START,
            extend_at: Instant::FAR,
            reap_at: Instant::FAR,
            failures: 0,
        }
    }

    /// The same worker, with the policy state of scopes wider than a worker in this handle. Before its `Started`.
    pub fn sharing(self, shared: &Shared) -> Worker {
        Worker { guard: Guard::new(self.seed, self.id, shared.clone()), ..self }
    }

    /// Takes note of an event, and appends what is to be done about it.
    pub fn handle(&mut self, now: Instant, event: &Event, out: &mut Vec<Command>) {
        match event {
            Event::Started => self.start(now),
            Event::Woke => {}
            Event::Notified => self.notified(now),
            Event::Claimed(claimed) => self.claimed(now, claimed, out),
            Event::Replied { token, outcome } => self.replied(now, *token, outcome),
            Event::Settled(settled) => self.settled(settled, out),
            Event::Extended { .. } => self.extending = false,
            Event::Reaped { returned, .. } => self.reaped(*returned, out),
            Event::Failed(operation) => self.failed(now, operation),
            Event::Drain => self.drain(),
        }
        // A reply may be one of many of the same instant: they are settled together, when the driver wakes the worker for it.
        if !matches!(event, Event::Replied { .. }) {
            self.act(now, out);
        }
    }

    /// When it wants to be woken, if nothing else happens; `None` for never.
    pub fn wake_at(&self) -> Option<Instant> {
        let claim = (self.may_claim()).then_some(self.claim_at);
        let settle = self.may_settle().then_some(self.settle_at);
        let extend = (!self.underway.is_empty() && !self.extending).then_some(self.extend_at);
        let reap = (!self.draining).then_some(self.reap_at);
        let held = self.held.iter().map(|(at, _)| *at).min();
        [claim, settle, extend, reap, held].into_iter().flatten().min().filter(|at| *at < Instant::FAR)
    }

    /// Whether it was told to drain and has nothing under way.
    pub fn is_idle(&self) -> bool {
        self.draining
            && self.underway.is_empty()
            && self.claiming.is_none()
            && !self.settling
            && self.pending.is_empty()
            && self.unsure.is_none()
    }

    /// Its number, from 0.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether it would claim if it were told of work.
    pub fn has_room(&self) -> bool {
        self.may_claim()
    }

    /// Attempts under way.
    pub fn in_flight(&self) -> usize {
        self.underway.len()
    }

    fn start(&mut self, now: Instant) {
        let mut phase = self.seed.draw(Stream::Phase, JobId(u64::from(self.id)), 0);
        self.claim_at = match self.settings.wait {
            Wait::Poll { every } => now + every.mul_f64(phase.unit()),
            Wait::Due { .. } | Wait::Listen { .. } => now,
        };
        self.reap_at = now + self.reap_every().mul_f64(phase.unit());
    }

    fn claimed(&mut self, now: Instant, claimed: &Claimed, out: &mut Vec<Command>) {
        let asked = self.claiming.take().unwrap_or(0);
        self.failures = 0;
        if self.underway.is_empty() {
            self.extend_at = now + self.settings.lease / 3;
        }
        let full = claimed.claims.len() as u32 >= asked;
        for claim in &claimed.claims {
            self.begin(now, claim, out);
        }
        let told = std::mem::take(&mut self.told);
        self.claim_at = if full || told { now } else { now + self.wait_after(claimed) };
        if !self.draining && !matches!(self.settings.wait, Wait::Poll { .. }) {
            let more = if full { Some(Duration::ZERO) } else { claimed.next_due };
            out.extend(more.map(|after| Command::Remind { after: vec![after] }));
        }
    }

    /// Starts an attempt, or hands the job back if there is no time left for it.
    fn begin(&mut self, now: Instant, claim: &Claim, out: &mut Vec<Command>) {
        self.underway.insert(claim.token, Attempt { job: claim.job, memory: claim.memory, claimed: now, retry_after: None });
        if self.draining {
            self.pending.push(Settlement { job: claim.job, token: claim.token, how: How::Release });
            return;
        }
        let request = Request {
            token: claim.token,
            job: claim.job,
            attempt: claim.memory.attempt(),
            kind: claim.kind.clone(),
            payload: claim.payload.clone(),
            timeout: self.timeout,
        };
        self.call(now, request, out);
    }

    /// Calls, or holds the attempt until the policy lets it.
    fn call(&mut self, now: Instant, request: Request, out: &mut Vec<Command>) {
        match self.guard.admit(&self.policy, now, request.job, request.attempt) {
            Ok(()) => out.push(Command::Call(request)),
            // Never at once: a driver that is woken at this very instant would turn in circles.
            Err(again) => self.held.push((again.max(now + Duration::from_nanos(1)), request)),
        }
    }

    /// Held attempts go back as if never claimed; the rest is finished.
    fn drain(&mut self) {
        self.draining = true;
        for (_, request) in std::mem::take(&mut self.held) {
            self.pending.push(Settlement { job: request.job, token: request.token, how: How::Release });
        }
    }

    fn wait_after(&self, claimed: &Claimed) -> Duration {
        match self.settings.wait {
            Wait::Poll { .. } if !claimed.claims.is_empty() => Duration::ZERO,
            Wait::Poll { every } => every,
            Wait::Due { at_most } | Wait::Listen { at_most } => at_most,
        }
    }

    fn replied(&mut self, now: Instant, token: Token, outcome: &Outcome) {
        let Some(attempt) = self.underway.get_mut(token) else { return };
        let decision = self.guard.decide(&self.policy, now, attempt.job, &attempt.memory, outcome);
        let said = self.guard.said();
        let reason = || said.map_or_else(|| outcome.name(), |said| format!("{outcome}, {said}").into());
        let how = match decision {
            Decision::Complete => How::Complete,
            Decision::Retry { after } => {
                let after = on_clock(&self.policy, now, attempt.claimed, after);
                attempt.retry_after = Some(after);
                How::Retry { after, reason: reason() }
            }
            Decision::Discard(why) => How::Discard { why, reason: reason() },
        };
        self.pending.push(Settlement { job: attempt.job, token, how });
        self.settle_at = self.settle_at.max(now);
    }

    fn settled(&mut self, settled: &Settled, out: &mut Vec<Command>) {
        self.settling = false;
        self.unsure = None;
        self.failures = 0;
        let mut retries = Vec::new();
        for token in settled.settled.iter().chain(&settled.lost) {
            retries.extend(self.underway.remove(*token).and_then(|attempt| attempt.retry_after));
        }
        if !retries.is_empty() && !matches!(self.settings.wait, Wait::Poll { .. }) {
            out.push(Command::Remind { after: retries });
        }
    }

    fn reaped(&mut self, returned: u64, out: &mut Vec<Command>) {
        self.failures = 0;
        if returned > 0 {
            out.push(Command::Remind { after: vec![Duration::ZERO] });
        }
    }

    fn notified(&mut self, now: Instant) {
        self.claim_at = self.claim_at.min(now);
        self.told = self.claiming.is_some();
    }

    fn failed(&mut self, now: Instant, operation: &Operation) {
        self.failures = self.failures.saturating_add(1);
        let again = now + self.pause();
        match operation {
            Operation::Claim => (self.claiming, self.claim_at) = (None, again),
            Operation::Settle { number, settlements } => {
                (self.settling, self.settle_at) = (false, again);
                self.unsure = Some((*number, settlements.clone()));
            }
            Operation::Extend => (self.extending, self.extend_at) = (false, again),
            Operation::Reap => self.reap_at = self.reap_at.min(now + self.reap_every()),
        }
    }

    fn pause(&self) -> Duration {
        let doubled = PAUSE.saturating_mul(1 << self.failures.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
        doubled.mul_f64(0.5 + 0.5 * self.seed.draw(Stream::Phase, JobId(u64::from(self.id)), self.failures).unit())
    }

    /// Asks for whatever is due and not yet asked for.
    fn act(&mut self, now: Instant, out: &mut Vec<Command>) {
        if self.held.iter().any(|(at, _)| *at <= now) {
            let (due, later) = std::mem::take(&mut self.held).into_iter().partition(|(at, _)| *at <= now);
            self.held = later;
            let due: Vec<(Instant, Request)> = due;
            for (_, request) in due {
                self.call(now, request, out);
            }
        }
        if self.may_settle() && self.settle_at <= now {
            self.settling = true;
            let (number, settlements) = self.next_settlement();
            out.push(Command::Settle { number, settlements });
        }
        if self.may_claim() && self.claim_at <= now {
            let limit = self.asked();
            self.claiming = Some(limit);
            out.push(Command::Claim { limit, lease: self.settings.lease });
        }
        if !self.underway.is_empty() && !self.extending && self.extend_at <= now {
            self.extending = true;
            self.extend_at = now + self.settings.lease / 3;
            let claims = self.underway.iter().map(|(token, attempt)| (attempt.job, token)).collect();
            out.push(Command::Extend { claims, lease: self.settings.lease });
        }
        if !self.draining && self.reap_at <= now {
            self.reap_at = now + self.reap_every();
            out.push(Command::Reap);
        }
    }

    fn next_settlement(&mut self) -> (u64, Vec<Settlement>) {
        self.unsure.take().unwrap_or_else(|| {
            self.settled_so_far += 1;
            (self.settled_so_far, std::mem::take(&mut self.pending))
        })
    }

    fn may_settle(&self) -> bool {
        !self.settling && (self.unsure.is_some() || !self.pending.is_empty())
    }

    fn may_claim(&self) -> bool {
        !self.draining && self.claiming.is_none() && self.underway.len() < self.settings.slots as usize
    }

    fn asked(&self) -> u32 {
        let free = self.settings.slots.saturating_sub(self.underway.len() as u32);
        free.min(self.settings.batch).max(1)
    }

    fn reap_every(&self) -> Duration {
        self.settings.lease / 2
    }
}

/// A delay that counts from where the policy's clock says, and comes due when its promoter next looks.
fn on_clock(policy: &Policy, now: Instant, claimed: Instant, after: Duration) -> Duration {
    let after = match policy.clock.base {
        ClockBase::Failure => after,
        ClockBase::Claim => after.saturating_sub(now.since(claimed)),
    };
    let quantum = crate::time::nanos(policy.clock.quantum);
    if quantum == 0 {
        return after;
    }
    let due = (now + after).as_nanos();
    Duration::from_nanos(due.div_ceil(quantum).saturating_mul(quantum).saturating_sub(now.as_nanos()))
}

#[cfg(test)]
mod tests;
