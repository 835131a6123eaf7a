//! The engine at full load, over several batch sizes: what a statement and a job cost in processor time.

use std::time::Duration;

use super::{Bench, alone, filled};
use crate::call::Outcome;
use crate::dist::Dist;
use crate::policy::Policy;
use crate::queue::ClaimMode;
use crate::real::mock::{Mock, Setup};
use crate::real::{Caller, Clock, Crew, Error, Handler, drain};
use crate::rng::Seed;
use crate::worker::{Request, Settings, Wait};

/// Batch sizes, and how many jobs are drained with each.
const SHAPES: [(u32, u64); 4] = [(1, 3_000), (8, 16_000), (32, 40_000), (128, 60_000)];
/// How long the downstream takes on average, so that jobs do not end together.
const ANSWER: Dist = Dist::Exponential { mean: Duration::from_millis(5) };
/// Enough to keep every processor of a small machine busy.
const WORKERS: u32 = 8;

/// One drain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) batch: u32,
    pub(super) jobs: u64,
    pub(super) statements: u64,
    pub(super) took: Duration,
}

/// What was measured.
#[derive(Clone, Debug)]
pub(super) struct Saturated {
    /// Every job completed at once.
    pub(super) plain: Vec<Load>,
    /// Every job retried once.
    pub(super) retried: Load,
    /// Every job called the downstream, and was settled when its answer came, not with its batch: what that costs more counts as the call's.
    pub(super) called: Load,
}

impl Saturated {
    pub(super) async fn measure(bench: &Bench<'_>) -> Result<Saturated, Error> {
        let part = if bench.quick { 10 } else { 1 };
        let mut plain = Vec::new();
        for (batch, jobs) in SHAPES {
            plain.push(one(bench, batch, jobs / part, Handler::Inline(|_| Outcome::Ok)).await?);
        }
        let (batch, jobs) = SHAPES[2];
        let retried = one(bench, batch, jobs / part / 2, Handler::Inline(fail_once)).await?;
        let clock = Clock::starting_in(Duration::ZERO);
        let setup = Setup { keep: false, ..Setup::of_a_run() };
        let mock = Mock::start(alone::downstream(ANSWER), clock, &setup).map_err(Error::Mock)?;
        let called = one(bench, batch, jobs / part / 2, Handler::Http(Caller::new(mock.address()))).await;
        drop(mock.stop());
        Ok(Saturated { plain, retried, called: called? })
    }
}

fn fail_once(request: &Request) -> Outcome {
    if request.attempt == 1 { Outcome::status(503) } else { Outcome::Ok }
}

async fn one(bench: &Bench<'_>, batch: u32, jobs: u64, handler: Handler) -> Result<Load, Error> {
    let schema = filled(bench, "load", jobs).await?;
    let workers = Settings {
        count: WORKERS,
        slots: batch,
        connections: WORKERS,
        claim: ClaimMode::Lease,
        batch,
        lease: Duration::from_secs(600),
        wait: Wait::Due { at_most: Duration::from_secs(1) },
    };
    let drained = drain(&schema, Crew { workers, policy: Policy::default(), seed: Seed(1), handler }, jobs).await;
    schema.drop().await?;
    let drained = drained?;
    Ok(Load { batch, jobs, statements: drained.transactions, took: drained.took })
}
