//! One thing at a time: how long it takes when nothing else is going on.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Bench, filled, group, numbered};
use crate::call::Outcome;
use crate::dist::Dist;
use crate::downstream::{self, Downstream};
use crate::job::JobId;
use crate::queue::ClaimMode;
use crate::queue::{Claimed, How, Settlement};
use crate::real::mock::{Mock, Setup};
use crate::real::pg::{Batch, Schema, Store, connect, insert};
use crate::real::{Caller, Clock, Error};
use crate::rng::Seed;
use crate::time::Instant;
use crate::worker::{Request, Settings, Wait};

/// Jobs in a large batch.
pub(super) const LARGE: u32 = 100;
/// Batches that are claimed and put off once, to be retries from then on.
const AGAIN: u64 = 3;
const LEASE: Duration = Duration::from_secs(600);

/// Medians and 99th percentiles, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) p99: f64,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    /// A claim that finds nothing.
    pub(super) look: Spread,
    /// A claim and a settlement of one new job.
    pub(super) claim_one: Spread,
    pub(super) settle_one: Spread,
    /// Of [`LARGE`] new jobs.
    pub(super) claim_many: Spread,
    pub(super) settle_many: Spread,
    /// Of [`LARGE`] retries that are claimed once more, and put off.
    pub(super) claim_retries: Spread,
    pub(super) settle_retries: Spread,
    /// An insert of one job, and of [`LARGE`].
    pub(super) insert_one: Spread,
    pub(super) insert_many: Spread,
    /// A reap that finds nothing.
    pub(super) reap: Spread,
    /// A call of a downstream that answers at once.
    pub(super) call: Spread,
    /// How late a timer runs.
    pub(super) timer: Spread,
}

impl Alone {
    pub(super) async fn measure(bench: &Bench<'_>, clock: Clock) -> Result<Alone, Error> {
        let times: u64 = if bench.quick { 30 } else { 300 };
        let few = times / 10;
        let schema = filled(bench, "alone", times + (few + AGAIN) * u64::from(LARGE)).await?;
        let mut alone = Alone { timer: timers(clock, times).await, call: calls(clock, times).await?, ..Alone::default() };
        let result = alone.statements(&schema, clock, times, few).await;
        schema.drop().await?;
        result.map(|()| alone)
    }

    async fn statements(&mut self, schema: &Schema, clock: Clock, times: u64, few: u64) -> Result<(), Error> {
        let settings = Settings {
            count: 1,
            slots: LARGE,
            connections: 1,
            claim: ClaimMode::Lease,
            batch: LARGE,
            lease: LEASE,
            wait: Wait::Due { at_most: Duration::from_secs(1) },
        };
        let user = User { store: Store::open(schema, &settings).await?, clock };
        let complete = |_| How::Complete;
        let retry = |_| How::Retry { after: Duration::ZERO, reason: "status-503".into() };
        (self.claim_one, self.settle_one) = user.pairs(1, times, complete).await?;
        (self.claim_many, self.settle_many) = user.pairs(LARGE, few, complete).await?;
        user.pairs(LARGE, AGAIN, retry).await?;
        (self.claim_retries, self.settle_retries) = user.pairs(LARGE, few, retry).await?;
        while !user.claim(1000).await?.1.claims.is_empty() {}
        let mut looks = Vec::new();
        let mut reaps = Vec::new();
        for _ in 0..times {
            looks.push(user.claim(LARGE).await?.0);
            let began = clock.now();
            user.store.reap().await?;
            reaps.push(clock.now().since(began));
        }
        (self.look, self.reap) = (spread(looks), spread(reaps));
        user.store.close().await;
        self.inserts(schema, clock, times, few).await
    }

    async fn inserts(&mut self, schema: &Schema, clock: Clock, times: u64, few: u64) -> Result<(), Error> {
        let mut connection = connect(schema.options()).await?;
        let mut next = 1_000_000;
        let mut number = 1_000_000;
        let group = group(1);
        for (size, rounds, into) in [(1, times, &mut self.insert_one), (u64::from(LARGE), few, &mut self.insert_many)] {
            let mut took = Vec::new();
            for _ in 0..rounds {
                let jobs = numbered(next, size);
                let batch = Batch { producer: -1, number, jobs: &jobs, groups: std::slice::from_ref(&group), max_retries: None };
                let began = clock.now();
                insert(&mut connection, batch, ClaimMode::Lease).await?;
                took.push(clock.now().since(began));
                (next, number) = (next + size, number + 1);
            }
            *into = spread(took);
        }
        sqlx::Connection::close(connection).await?;
        Ok(())
    }
}

/// The one who uses the store.
struct User {
    store: Store,
    clock: Clock,
}

impl User {
    async fn claim(&self, limit: u32) -> Result<(Duration, Claimed), Error> {
        let began = self.clock.now();
        let claimed = self.store.claim(0, limit, LEASE).await?;
        Ok((self.clock.now().since(began), claimed))
    }

    /// Claims and settles so often, `limit` jobs at a time.
    async fn pairs(&self, limit: u32, times: u64, how: impl Fn(JobId) -> How) -> Result<(Spread, Spread), Error> {
        let (mut claims, mut settles) = (Vec::new(), Vec::new());
        for _ in 0..times.max(1) {
            let (took, claimed) = self.claim(limit).await?;
            claims.push(took);
            let settle = |claim: &crate::queue::Claim| Settlement { job: claim.job, token: claim.token, how: how(claim.job) };
            let settlements: Vec<Settlement> = claimed.claims.iter().map(settle).collect();
            let began = self.clock.now();
            self.store.settle(&settlements).await?;
            settles.push(self.clock.now().since(began));
        }
        Ok((spread(claims), spread(settles)))
    }
}

/// By how much timers are late that are set for odd times.
async fn timers(clock: Clock, times: u64) -> Spread {
    let mut late = Vec::new();
    for number in 0..times {
        let at = clock.now() + Duration::from_micros(1_000 + number * 137 % 3_000);
        clock.sleep_until(at).await;
        late.push(clock.now().since(at));
    }
    spread(late)
}

/// A downstream that takes so long, however many call.
pub(super) fn downstream(latency: Dist) -> Downstream {
    Downstream::new(downstream::Settings { servers: 10_000, latency, ..downstream::Settings::default() }, Seed(1))
}

async fn calls(clock: Clock, times: u64) -> Result<Spread, Error> {
    let at_once = Dist::Constant { value: Duration::ZERO };
    let mock = Mock::start(downstream(at_once), clock, &Setup { keep: false, ..Setup::of_a_run() }).map_err(Error::Mock)?;
    let took = call(mock.address(), clock, times).await;
    drop(mock.stop());
    Ok(spread(took))
}

async fn call(address: SocketAddr, clock: Clock, times: u64) -> Vec<Duration> {
    let caller = Caller::new(address);
    let mut took = Vec::new();
    for number in 0..times {
        let request = Request {
            token: crate::queue::Token(0),
            job: JobId(number),
            attempt: 1,
            kind: "email".into(),
            payload: "{}".into(),
            timeout: Duration::from_secs(5),
        };
        let began: Instant = clock.now();
        let outcome = caller.call(0, &request).await;
        // The first opens the connection.
        if number > 0 && outcome == Outcome::Ok {
            took.push(clock.now().since(began));
        }
    }
    took
}

fn spread(mut took: Vec<Duration>) -> Spread {
    took.sort_unstable();
    let at = |share: f64| {
        let rank = ((took.len() as f64 * share).ceil() as usize).saturating_sub(1);
        took.get(rank).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    };
    Spread { median: at(0.5), p99: at(0.99) }
}
