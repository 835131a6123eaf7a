//! The engine alone: workers that empty a queue, with whatever handler, and nothing else running.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::bell::Bell;
use super::clock::Clock;
use super::drive::{Live, Phase, Shared, drive};
use super::listen::{listen, pass_on};
use super::pg::{Schema, Store};
use super::{Error, Handler};
use crate::metrics::{Recorder, Tally};
use crate::policy::Policy;
use crate::rng::Seed;
use crate::worker::{self, Wait, Worker};

/// Workers on a queue.
#[derive(Debug)]
pub struct Crew {
    /// The workers.
    pub workers: worker::Settings,
    /// Their policy.
    pub policy: Policy,
    /// The seed of its jitter.
    pub seed: Seed,
    /// What they do with a job.
    pub handler: Handler,
}

/// What a crew did.
#[derive(Debug)]
pub struct Drained {
    /// From the first claim to the last settlement.
    pub took: Duration,
    /// What the workers counted.
    pub tally: Tally,
    /// Transactions begun.
    pub transactions: u64,
}

/// Works until `jobs` jobs have ended.
///
/// # Errors
/// If the database can't be reached at the start, or a task died.
pub async fn drain(schema: &Schema, crew: Crew, jobs: u64) -> Result<Drained, Error> {
    let clock = Clock::starting_in(Duration::ZERO);
    let shared = Arc::new(Shared {
        clock,
        store: Store::open(schema, &crew.workers).await?,
        handler: crew.handler,
        live: Arc::new(Live::default()),
        bell: Bell::default(),
        all_ended: Notify::new(),
        jobs,
    });
    let (phase, phases) = watch::channel(Phase::Run);
    let timekeeper = shared.clone();
    let mut others = JoinSet::new();
    others.spawn(async move { timekeeper.bell.keep_time(clock).await });
    if matches!(crew.workers.wait, Wait::Listen { .. }) {
        others.spawn(pass_on(listen(schema).await?, schema.clone(), shared.clone()));
    }
    let began = clock.now();
    let mut workers = JoinSet::new();
    for id in 0..crew.workers.count {
        let worker = Worker::new(id, crew.workers, Duration::from_secs(1), crew.policy.clone(), crew.seed);
        workers.spawn(drive(worker, shared.clone(), phases.clone(), false));
    }
    if jobs > 0 {
        shared.all_ended.notified().await;
    }
    let took = clock.now().since(began);
    let _ = phase.send(Phase::Drain);
    let crew = workers.join_all().await;
    others.shutdown().await;
    let (_, tally) = Recorder::merge(crew.into_iter().map(|(recorder, _)| recorder).collect());
    let transactions = shared.store.transactions();
    shared.store.close().await;
    Ok(Drained { took, tally, transactions })
}
