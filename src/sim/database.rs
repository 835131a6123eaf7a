//! The database in virtual time: a store, connections, and what each statement takes.

use std::sync::Arc;

use super::slab::Slab;
use super::station::Connections;
use super::store::{Kind, Store};
use super::world::{Next, World};
use crate::journal::Sink;
use crate::policy::Policy;
use crate::queue::ClaimMode;
use crate::rng::Stream;
use crate::scenario::Scenario;
use crate::time::Instant;
use crate::worker::{Command, Event};

/// The store behind its connections.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) store: Store,
    mode: ClaimMode,
    connections: Connections,
    operations: Slab<Operation>,
    /// Statements sent for the workers.
    pub(super) transactions: u64,
    /// Jobs whose end has been confirmed to a worker.
    confirmed: u64,
}

/// A statement under way.
#[derive(Debug)]
struct Operation {
    worker: u32,
    command: Command,
    answer: Option<Event>,
    /// Jobs that it brings to an end.
    ends: u64,
    /// Connections that are free after the answer: its own. In transaction mode a claim keeps it for its job's settlement.
    gives_back: u32,
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
            operations: Slab::default(),
            transactions: 0,
            confirmed: 0,
        }
    }

    /// Whether every one of `jobs` jobs has ended, and a worker knows it.
    pub(super) fn all_ended(&self, jobs: u64) -> bool {
        self.confirmed >= jobs
    }

    /// In transaction mode these need no statement of their own: the open transaction holds the job.
    fn is_free(&self, command: &Command) -> bool {
        self.mode == ClaimMode::Transaction && matches!(command, Command::Extend { .. } | Command::Reap)
    }

    /// Whether the connection is already there: that of the claim.
    fn is_settling_a_transaction(&self, command: &Command) -> bool {
        self.mode == ClaimMode::Transaction && matches!(command, Command::Settle { .. })
    }
}

impl<S: Sink> World<'_, S> {
    /// A worker asks something of the store.
    pub(super) fn ask(&mut self, now: Instant, worker: u32, command: Command) {
        let (free, held) = (self.database.is_free(&command), self.database.is_settling_a_transaction(&command));
        let gives_back = match &command {
            Command::Settle { settlements, .. } if held => settlements.len() as u32,
            _ => u32::from(!free),
        };
        let operation = self.database.operations.put(Operation { worker, command, answer: None, ends: 0, gives_back });
        if free {
            self.effect(now, operation);
        } else if held || self.database.connections.take(operation) {
            self.send(now, operation);
        }
    }

    /// Its connection is free: the statement is sent.
    fn send(&mut self, now: Instant, operation: u32) {
        self.database.transactions += 1;
        let work = match &self.database.operations[operation].command {
            Command::Settle { settlements, .. } => self.profile.settle.work(settlements.len()),
            Command::Extend { claims, .. } => self.profile.other.work(claims.len()),
            Command::Claim { .. } => self.profile.claim.work(0),
            _ => self.profile.other.work(0),
        };
        let done = self.processors.serve(now, work);
        if done > now {
            self.calendar.plan(done, Next::Effect(operation));
        } else {
            self.effect(now, operation);
        }
    }

    /// The store does what it was asked.
    pub(super) fn effect(&mut self, now: Instant, number: u32) {
        let transaction = self.database.mode == ClaimMode::Transaction;
        let Database { store, operations, .. } = &mut self.database;
        let operation = &mut operations[number];
        let mut more = std::time::Duration::ZERO;
        let (answer, cost) = match &operation.command {
            Command::Claim { limit, lease } => {
                let claimed = store.claim(now, *limit, *lease);
                operation.gives_back = u32::from(!transaction || claimed.claims.is_empty());
                more = self.profile.claim.work(claimed.claims.len()).saturating_sub(self.profile.claim.work(0));
                // A transaction's claim does not look ahead.
                let next_due = claimed.next_due.filter(|_| !transaction);
                (Event::Claimed(crate::queue::Claimed { next_due, ..claimed }), &self.profile.claim)
            }
            Command::Settle { settlements, .. } => {
                let (settled, ends) = store.settle(now, settlements);
                operation.ends = ends;
                (Event::Settled(settled), &self.profile.settle)
            }
            Command::Extend { claims, lease } => {
                let lost = if transaction { Vec::new() } else { store.extend(now, claims, *lease) };
                (Event::Extended { lost }, &self.profile.other)
            }
            _ => {
                let (returned, discarded) = if transaction { (0, 0) } else { store.reap(now) };
                operation.ends = discarded;
                (Event::Reaped { returned, discarded }, &self.profile.other)
            }
        };
        operation.answer = Some(answer);
        let wait = cost.wait();
        let at = self.processors.serve(now, more) + self.sample(&wait, Stream::Store);
        self.calendar.plan(at, Next::Answer(number));
    }

    /// The answer arrives; the connection goes to the next who waits for one.
    pub(super) fn answer(&mut self, number: u32) {
        let Some(operation) = self.database.operations.take(number) else { return };
        self.database.confirmed += operation.ends;
        for _ in 0..operation.gives_back {
            if let Some(next) = self.database.connections.give_back() {
                self.send(self.calendar.now(), next);
            }
        }
        if let Some(event) = operation.answer {
            self.step(operation.worker, event);
        }
    }
}
