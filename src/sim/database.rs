//! The database in virtual time: a store, connections, and what each statement takes.
//!
//! ```text
//!  asked ──► desk, if small ──► statement waits for a connection ──► sent ──► effect ──► answer ──► its workers
//!                                 └ the database is away: fails        └ cut before: void; after: carried out, and nobody hears of it
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::desk::{Desk, Load, SMALL};
use super::slab::Slab;
use super::station::Connections;
use super::store::{Kind, Store};
use super::world::{Next, World};
use crate::dist::Dist;
use crate::job::JobId;
use crate::journal::Sink;
use crate::policy::Policy;
use crate::profile::Profile;
use crate::queue::{ClaimMode, Claimed, How, Settled, Token};
use crate::rng::Stream;
use crate::scenario::Scenario;
use crate::time::Instant;
use crate::worker::{self, Command, Event};

/// The store behind its connections.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) store: Store,
    mode: ClaimMode,
    connections: Connections,
    count: u32,
    operations: Slab<Operation>,
    statements: Slab<Statement>,
    desk: Desk,
    /// In transaction mode: the claims whose transaction is open, and whose they are.
    open: BTreeMap<Token, (u32, JobId)>,
    /// Statements sent for the workers.
    pub(super) transactions: u64,
    /// Jobs that have ended and whose worker is still to be told.
    untold: u64,
    away_until: Instant,
}

/// A statement under way: it serves one request, or several of a kind.
#[derive(Debug, Default)]
struct Statement {
    operations: Vec<u32>,
    /// It is part of a turn at the desk; these claims come next in it.
    turn: Option<Vec<u32>>,
}

/// A request under way.
#[derive(Debug)]
struct Operation {
    worker: u32,
    command: Command,
    answer: Option<Event>,
    /// Jobs that it brings to an end.
    ends: u64,
    /// Connections that are free after the answer: its own. In transaction mode a claim keeps it for its job's settlement.
    gives_back: u32,
    /// It has a connection.
    sent: bool,
    /// Its connection was cut before it was carried out.
    void: bool,
    /// Nobody waits for its answer: its worker is dead, or was told that it failed.
    unheard: bool,
}

impl Database {
    pub(super) fn new(scenario: &Scenario, policy: &Policy, jobs: usize) -> Database {
        let payloads: [Arc<str>; 2] = ["{}".into(), "{".into()];
        let kind = |group: &crate::workload::Group| Kind {
            name: group.kind.as_str().into(),
            priority: group.priority,
            max_retries: policy.row_limit().unwrap_or(group.max_retries),
            payloads: payloads.clone(),
        };
        let mode = scenario.workers.claim;
        let mut store = Store::new(mode, scenario.jobs.iter().map(kind).collect());
        store.reserve(jobs);
        Database {
            store,
            mode,
            connections: Connections::new(scenario.workers.connections),
            count: scenario.workers.connections,
            operations: Slab::default(),
            statements: Slab::default(),
            desk: Desk::default(),
            open: BTreeMap::new(),
            transactions: 0,
            untold: 0,
            away_until: Instant::START,
        }
    }

    /// Whether every one of `jobs` jobs has ended, and a worker knows it.
    pub(super) fn all_ended(&self, jobs: u64) -> bool {
        self.untold == 0 && self.store.ended() >= jobs
    }

    /// Whether it is being restarted.
    pub(super) fn is_away(&self, now: Instant) -> bool {
        now < self.away_until
    }

    /// A worker is dead: what it has asked for and not sent is never sent, its open transactions are rolled back. Returns those whose
    /// statements can be sent now.
    pub(super) fn abandon(&mut self, now: Instant, worker: u32) -> Vec<u32> {
        for (_, operation) in self.operations.iter_mut().filter(|(_, operation)| operation.worker == worker) {
            operation.unheard = true;
            self.untold -= std::mem::take(&mut operation.ends);
        }
        self.roll_back(now, |holder| holder == worker)
    }

    /// Rolls open transactions back; returns those who get their connections.
    fn roll_back(&mut self, now: Instant, whose: impl Fn(u32) -> bool) -> Vec<u32> {
        let broken: Vec<(Token, JobId)> =
            self.open.iter().filter(|(_, (holder, _))| whose(*holder)).map(|(token, (_, job))| (*token, *job)).collect();
        for (token, job) in &broken {
            self.open.remove(token);
            self.store.revoke(now, *job, *token);
        }
        broken.iter().filter_map(|_| self.connections.give_back()).collect()
    }
}

impl<S: Sink> World<'_, S> {
    /// A worker asks something of the store.
    pub(super) fn ask(&mut self, now: Instant, worker: u32, command: Command) {
        let transaction = self.database.mode == ClaimMode::Transaction;
        // The open transaction holds the job: these need no statement.
        let free = transaction && matches!(command, Command::Extend { .. } | Command::Reap);
        let mut gives_back = u32::from(!free);
        if let (true, Command::Settle { settlements, .. }) = (transaction, &command) {
            gives_back = settlements.iter().filter(|one| self.database.open.remove(&one.token).is_some()).count() as u32;
        }
        let small = match &command {
            Command::Settle { settlements, .. } => Some((true, settlements.len())),
            Command::Claim { limit, .. } => Some((false, *limit as usize)),
            _ => None,
        };
        let has_connection = free || (transaction && matches!(command, Command::Settle { .. }));
        let operation =
            Operation { worker, command, answer: None, ends: 0, gives_back, sent: false, void: false, unheard: false };
        let number = self.database.operations.put(operation);
        if let Some((settles, jobs)) = small.filter(|(_, jobs)| !transaction && *jobs <= SMALL) {
            let desk = &mut self.database.desk;
            let begins = if settles { desk.settle(number, jobs) } else { desk.claim(number, jobs) };
            if begins {
                self.next_turn(now);
            }
            return;
        }
        let statement = self.database.statements.put(Statement { operations: vec![number], turn: None });
        if free {
            self.effect(now, statement);
        } else if has_connection || self.database.connections.take(statement) {
            self.send(now, statement);
        }
    }

    /// Serves what has come together at the desk; if nothing has, the turn is over.
    fn next_turn(&mut self, now: Instant) {
        let Some(Load { settles, claims }) = self.database.desk.next() else { return };
        let (operations, follow) = if settles.is_empty() { (claims, vec![]) } else { (settles, claims) };
        let statement = self.database.statements.put(Statement { operations, turn: Some(follow) });
        if self.database.connections.take(statement) {
            self.send(now, statement);
        }
    }

    /// It has a connection: the statement is sent.
    pub(super) fn send(&mut self, now: Instant, number: u32) {
        let away = now < self.database.away_until;
        let Database { operations, statements, mode, .. } = &mut self.database;
        let Profile { settle, claim, other, .. } = self.profile;
        let (mut work, mut more) = (Duration::ZERO, Duration::ZERO);
        let mut somebody = false;
        for operation in &statements[number].operations {
            let operation = &mut operations[*operation];
            operation.sent = true;
            somebody |= !operation.unheard;
            if away {
                operation.answer = Some(failed(*mode, &operation.command));
            }
            match &operation.command {
                Command::Settle { settlements, .. } => {
                    let retries = settlements.iter().filter(|one| matches!(one.how, How::Retry { .. } | How::Release)).count();
                    work = settle.work();
                    more += settle.more(settlements.len() - retries, retries);
                }
                Command::Extend { claims, .. } => (work, more) = (other.work(), other.more(claims.len(), 0)),
                Command::Claim { .. } => work = claim.work(),
                _ => work = other.work(),
            }
        }
        if away || !somebody {
            return self.calendar.plan(now, Next::Answer(number));
        }
        self.database.transactions += 1;
        let done = self.processors.serve(now, work + more);
        if done > now {
            self.calendar.plan(done, Next::Effect(number));
        } else {
            self.effect(now, number);
        }
    }

    /// The store does what it was asked.
    pub(super) fn effect(&mut self, now: Instant, number: u32) {
        let all = std::mem::take(&mut self.database.statements[number].operations);
        let mut more = Duration::ZERO;
        let mut wait = Dist::Constant { value: Duration::ZERO };
        for operation in &all {
            (more, wait) = self.carry_out_one(now, *operation, more);
        }
        self.database.statements[number].operations = all;
        let at = self.processors.serve(now, more) + self.sample(&wait, Stream::Store);
        self.calendar.plan(at, Next::Answer(number));
    }

    /// Carries out one request; the work that follows from it, added to `more`, and how long the answer waits.
    fn carry_out_one(&mut self, now: Instant, number: u32, more: Duration) -> (Duration, Dist) {
        let transaction = self.database.mode == ClaimMode::Transaction;
        let Profile { settle, claim, other, .. } = self.profile;
        let operation = &mut self.database.operations[number];
        // A transaction whose client is gone is rolled back.
        if operation.void || (transaction && operation.unheard && matches!(operation.command, Command::Claim { .. })) {
            return (more, other.wait());
        }
        let (worker, command) = (operation.worker, std::mem::replace(&mut operation.command, Command::Reap));
        let (mut added, mut ends) = (Duration::ZERO, 0);
        let (answer, cost) = match &command {
            Command::Claim { limit, lease } => {
                let claimed = self.database.store.claim(now, *limit, *lease);
                let retries = claimed.claims.iter().filter(|claim| claim.memory.retries > 0).count();
                added = claim.more(claimed.claims.len() - retries, retries);
                if transaction && !claimed.claims.is_empty() {
                    self.database.operations[number].gives_back = 0;
                    self.database.open.extend(claimed.claims.iter().map(|claim| (claim.token, (worker, claim.job))));
                }
                // A transaction's claim does not look ahead.
                let next_due = claimed.next_due.filter(|_| !transaction);
                (Event::Claimed(Claimed { next_due, ..claimed }), claim)
            }
            Command::Settle { settlements, .. } => {
                let (settled, ended) = self.database.store.settle(now, settlements);
                ends = ended;
                (Event::Settled(settled), settle)
            }
            Command::Extend { claims, lease } => {
                let lost = if transaction { Vec::new() } else { self.database.store.extend(now, claims, *lease) };
                (Event::Extended { lost }, other)
            }
            _ => {
                let (returned, discarded) = if transaction { (0, 0) } else { self.database.store.reap(now) };
                ends = discarded;
                (Event::Reaped { returned, discarded }, other)
            }
        };
        let operation = &mut self.database.operations[number];
        (operation.command, operation.answer) = (command, Some(answer));
        if !operation.unheard {
            operation.ends = ends;
            self.database.untold += ends;
        }
        (more + added, cost.wait())
    }

    /// The answer arrives. The connection goes to what comes next in the turn, or to the next who waits for one.
    pub(super) fn answer(&mut self, number: u32) {
        let now = self.calendar.now();
        let Some(Statement { operations, turn }) = self.database.statements.take(number) else { return };
        let answered: Vec<Operation> =
            operations.iter().filter_map(|operation| self.database.operations.take(*operation)).collect();
        let mut gives_back = if turn.is_some() { 1 } else { answered.iter().map(|operation| operation.gives_back).sum() };
        let is_turn = turn.is_some();
        if let Some(claims) = turn.filter(|claims| !claims.is_empty()) {
            let next = self.database.statements.put(Statement { operations: claims, turn: Some(vec![]) });
            gives_back = 0;
            self.send(now, next);
        } else if is_turn {
            self.next_turn(now);
        }
        for _ in 0..gives_back {
            if let Some(next) = self.database.connections.give_back() {
                self.send(now, next);
            }
        }
        for operation in answered {
            self.database.untold -= operation.ends;
            if let Some(event) = operation.answer.filter(|_| !operation.unheard) {
                self.deliver(operation.worker, event);
            }
        }
    }

    /// All connections are cut, and none can be had until `back`. What was sent and not carried out is not; who waits for an answer is
    /// told that there is none. Returns how many were cut.
    pub(super) fn cut(&mut self, now: Instant, back: Instant) -> u64 {
        self.database.away_until = back.max(self.database.away_until);
        let Database { operations, store, mode, untold, .. } = &mut self.database;
        let mut told = Vec::new();
        for (_, operation) in operations.iter_mut().filter(|(_, operation)| operation.sent) {
            operation.void = operation.answer.is_none();
            let was_heard = !std::mem::replace(&mut operation.unheard, true);
            *untold -= std::mem::take(&mut operation.ends);
            if let (ClaimMode::Transaction, true, Command::Settle { settlements, .. }) =
                (*mode, operation.void, &operation.command)
            {
                settlements.iter().for_each(|one| store.revoke(now, one.job, one.token));
            }
            told.extend(was_heard.then(|| (operation.worker, failed(*mode, &operation.command))));
        }
        for next in self.database.roll_back(now, |_| true) {
            self.send(now, next);
        }
        for (worker, event) in told {
            self.deliver(worker, event);
        }
        u64::from(self.database.count)
    }
}

/// What a worker is told whose statement has no answer. In transaction mode an unconfirmed settlement counts as lost.
fn failed(mode: ClaimMode, command: &Command) -> Event {
    match command {
        Command::Settle { settlements, .. } if mode == ClaimMode::Transaction => {
            let lost = settlements.iter().map(|one| one.token).collect();
            Event::Settled(Settled { settled: Vec::new(), lost })
        }
        Command::Settle { number, settlements } => {
            Event::Failed(worker::Operation::Settle { number: *number, settlements: settlements.clone() })
        }
        Command::Claim { .. } => Event::Failed(worker::Operation::Claim),
        Command::Extend { .. } => Event::Failed(worker::Operation::Extend),
        Command::Call(_) | Command::Reap | Command::Remind { .. } => Event::Failed(worker::Operation::Reap),
    }
}
