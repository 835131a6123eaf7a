//! The desk: small requests that come while others are being served wait, and are served together, in one statement.
//!
//! A statement for one job costs the server nearly as much as one for twenty: most of it goes into getting the statement, its locks and its
//! commit going. So no more than [`TURNS`] statements for small requests are under way at a time, and whatever has come in meanwhile is
//! the next one. A request that meets an idle desk is served at once, alone; the busier the desk, the larger its turns. Every
//! worker still gets a batch and a lease of its own, and an answer only when its own work is committed.
//!
//! Large requests do not come here: they keep a server process busy by themselves.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Lease;
use super::end::parted;
use super::held::LARGEST;
use crate::queue::{Claimed, Settled, Settlement, Token};

/// Most turns at once: while one is in the server, the answers of the other are dealt out.
const TURNS: u32 = 2;

/// Who waits, and how many turns are under way.
#[derive(Debug, Default)]
pub(super) struct Desk {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    settles: VecDeque<Settle>,
    claims: VecDeque<Ask>,
    turns: u32,
}

/// A settlement that waits.
#[derive(Debug)]
pub(super) struct Settle {
    pub(super) settlements: Vec<Settlement>,
    pub(super) answer: oneshot::Sender<Result<Settled, sqlx::Error>>,
}

/// A claim that waits.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) worker: u32,
    pub(super) limit: u32,
    pub(super) lease: Duration,
    pub(super) answer: oneshot::Sender<Result<Claimed, sqlx::Error>>,
}

/// What is served together.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) settles: Vec<Settle>,
    /// All for the same time.
    pub(super) claims: Vec<Ask>,
}

impl Settle {
    /// Answers it: of all claims that were settled together, those were lost.
    pub(super) fn succeed(self, lost: &BTreeSet<Token>) {
        // Whoever does not wait for the answer any more has been stopped.
        let _ = self.answer.send(Ok(parted(&self.settlements, lost)));
    }
}

impl Ask {
    /// Answers it.
    pub(super) fn succeed(self, claimed: Claimed) {
        let _ = self.answer.send(Ok(claimed));
    }
}

impl Load {
    /// Tells everybody that it is unknown what was done.
    pub(super) fn fail(self, error: &sqlx::Error) {
        let again = || sqlx::Error::Protocol(error.to_string());
        self.settles.into_iter().for_each(|settle| drop(settle.answer.send(Err(again()))));
        self.claims.into_iter().for_each(|ask| drop(ask.answer.send(Err(again()))));
    }
}

impl Desk {
    /// Waits for a settlement's answer.
    pub(super) async fn settle(of: &Arc<Lease>, settlements: Vec<Settlement>) -> Result<Settled, sqlx::Error> {
        let (answer, answered) = oneshot::channel();
        Desk::enter(of, |waiting| waiting.settles.push_back(Settle { settlements, answer }));
        answered.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
    }

    /// Waits for a claim's answer.
    pub(super) async fn claim(of: &Arc<Lease>, worker: u32, limit: u32, lease: Duration) -> Result<Claimed, sqlx::Error> {
        let (answer, answered) = oneshot::channel();
        Desk::enter(of, |waiting| waiting.claims.push_back(Ask { worker, limit, lease, answer }));
        answered.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
    }

    fn enter(of: &Arc<Lease>, come: impl FnOnce(&mut Waiting)) {
        let mut waiting = of.desk.waiting.lock().expect("nobody panics while holding it");
        come(&mut waiting);
        if waiting.turns < TURNS {
            waiting.turns += 1;
            tokio::spawn(Turn { lease: of.clone(), is_over: false }.take());
        }
    }

    /// What comes next. If nobody waits, the turn is over: whoever comes after that begins one.
    fn next(&self) -> Option<Load> {
        let mut waiting = self.waiting.lock().expect("nobody panics while holding it");
        let mut load = Load::default();
        let mut jobs = 0;
        while let Some(settle) = waiting.settles.pop_front_if(|next| fits(&mut jobs, next.settlements.len())) {
            load.settles.push(settle);
        }
        let (mut jobs, lease) = (0, waiting.claims.front().map(|ask| ask.lease));
        while let Some(ask) =
            waiting.claims.pop_front_if(|next| Some(next.lease) == lease && fits(&mut jobs, next.limit as usize))
        {
            load.claims.push(ask);
        }
        if load.settles.is_empty() && load.claims.is_empty() {
            waiting.turns -= 1;
            return None;
        }
        Some(load)
    }
}

/// Whether so many more jobs go into a turn; the first always do.
fn fits(jobs: &mut usize, more: usize) -> bool {
    let fits = *jobs == 0 || *jobs + more <= LARGEST as usize;
    if fits {
        *jobs += more;
    }
    fits
}

/// One place at the desk.
struct Turn {
    lease: Arc<Lease>,
    is_over: bool,
}

impl Turn {
    /// Serves until nobody waits.
    async fn take(mut self) {
        while let Some(load) = self.lease.desk.next() {
            self.lease.serve(load).await;
        }
        self.is_over = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            // It was broken off: those who wait are served by the next who comes.
            self.lease.desk.waiting.lock().expect("nobody panics while holding it").turns -= 1;
        }
    }
}
