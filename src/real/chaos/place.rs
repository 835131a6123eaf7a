//! A place in the crew: the workers that stand in it, one after another.

use std::sync::Arc;

use tokio::sync::watch;

use super::reins::{Order, Reins, Sent};
use crate::policy::{Policy, Shared as PolicyState};
use crate::real::drive::{Ended, Life, Phase, Shared, drive_on};
use crate::rng::Seed;
use crate::time::Instant;
use crate::worker::{Settings, Worker};

/// A place, and what its workers are made of.
#[derive(Debug)]
pub(in crate::real) struct Place {
    /// Its number, from 0, and that of the first worker there.
    pub(in crate::real) number: u32,
    /// What its workers are set up with.
    pub(in crate::real) settings: Settings,
    /// How long they wait for the downstream.
    pub(in crate::real) timeout: std::time::Duration,
    /// Their policy.
    pub(in crate::real) policy: Policy,
    /// The seed of their luck.
    pub(in crate::real) seed: Seed,
    /// What their policy shares among all workers.
    pub(in crate::real) state: PolicyState,
    /// What befalls them.
    pub(in crate::real) reins: Reins,
    /// Keep their steps.
    pub(in crate::real) tape: bool,
}

impl Place {
    /// Fills the place as long as the run lasts; returns what was recorded of whoever stood there.
    pub(in crate::real) async fn hold(mut self, shared: Arc<Shared>, mut phase: watch::Receiver<Phase>) -> Vec<Life> {
        let mut lives = Vec::new();
        loop {
            let worker = self.worker(lives.len() as u32);
            let (life, ended) = drive_on(worker, shared.clone(), phase.clone(), self.tape, &mut self.reins).await;
            lives.push(life);
            match ended {
                Ended::Done => return lives,
                Ended::Followed => {}
                Ended::Killed { back } => {
                    if !self.stay_empty(back, &shared, &mut phase).await {
                        return lives;
                    }
                }
            }
            if *phase.borrow() != Phase::Run {
                return lives;
            }
            self.reins.time = self.reins.next.take().unwrap_or(self.reins.time);
        }
    }

    /// The `n`-th worker here. Its number is nobody else's: a store knows a client's last settlement by it.
    fn worker(&self, n: u32) -> Worker {
        let id = self.number + n * self.settings.count;
        let worker = Worker::new(id, self.settings, self.timeout, self.policy.clone(), self.seed);
        // With a clock of its own it can't read what others wrote down by theirs.
        if self.reins.time == super::Time::default() { worker.sharing(&self.state) } else { worker }
    }

    /// Waits until the place is to be filled again; false if the run is over first.
    async fn stay_empty(&mut self, back: Option<Instant>, shared: &Shared, phase: &mut watch::Receiver<Phase>) -> bool {
        let mut back = back.unwrap_or(Instant::FAR);
        loop {
            tokio::select! {
                _ = phase.wait_for(|phase| *phase != Phase::Run) => return false,
                () = shared.clock.sleep_until(back) => return true,
                sent = self.reins.next_sent() => match sent {
                    // Nobody is there to be hit again, but the place stays empty for as long as the longer blow says.
                    Sent { order: Order::Die { back: later }, .. } => back = back.max(later.unwrap_or(Instant::FAR)),
                    Sent { order: Order::Pause { .. } | Order::Follow, .. } => {}
                },
            }
        }
    }
}
