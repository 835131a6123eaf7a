//! The engine: a claim moves jobs from the queue into a batch under a lease, in one statement and one short transaction; a settlement moves
//! them on.
//!
//! * A batch is written once; its lease is a small row. To complete all its jobs is to delete that row and to append another;
//!   otherwise the lease notes which jobs have been settled.
//! * A claim goes on from where the last one was (the [`mark`]), so that the dead rows behind it cost nothing, even while an old
//!   transaction somewhere keeps them from being vacuumed, and it passes the retries by while none can be due. Every 100 ms,
//!   or ten times as long as that takes, and whenever a claim found less than it asked for, one looks from the beginning: so long may a
//!   new job of higher priority be overlooked, and so long another process's retry.
//! * Small requests that come together are served together (the [`desk`]).
//! * A settlement can be sent again. Only its holder and the reaper end a claim, and the reaper leaves a note: a claim
//!   that is neither held nor noted has been settled.
//! * Batches are numbered here, under a number that the database gave this instance. So a claim whose answer was lost is not lost itself:
//!   the same worker's next claim asks for that batch first.
//!
//! A worker that dies leaves its batches behind. What it had not settled is done again: its `slots` at the most.

mod desk;
mod end;
mod held;
mod mark;
mod row;
mod serve;
mod take;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use self::desk::Desk;
use self::held::{Extent, Held, LARGEST, SMALL, batch_of, by_batch, token};
use self::mark::{Found, Look, Mark};
use self::take::{Haul, Order, Part};
use super::connections::Connections;
use super::store::micros;
use crate::job::JobId;
use crate::queue::{Claimed, How, Settled, Settlement, Token};

/// Far beyond any run; an instant so far away can still be counted.
const FAR: Duration = Duration::from_secs(100 * 366 * 86_400);

/// The store of one process: its connections, and what it knows of its batches and of its place in the queue.
#[derive(Debug)]
pub(super) struct Lease {
    connections: Connections,
    held: Mutex<Held>,
    mark: Mutex<Mark>,
    desk: Desk,
    strict: bool,
    statements: AtomicU64,
}

impl Lease {
    /// Has the database number this instance.
    pub(super) async fn open(connections: Connections, strict: bool) -> Result<Arc<Lease>, sqlx::Error> {
        let mut connection = connections.take().await?;
        let instance = sqlx::query_file_scalar!("src/real/pg/instance.sql").fetch_one(&mut *connection).await?;
        connection.give_back();
        Ok(Arc::new(Lease {
            connections,
            held: Mutex::new(Held::of(instance)),
            mark: Mutex::default(),
            desk: Desk::default(),
            strict,
            statements: AtomicU64::new(0),
        }))
    }

    /// Statements sent so far, each its own transaction.
    pub(super) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    pub(super) async fn claim(self: &Arc<Self>, worker: u32, limit: u32, lease: Duration) -> Result<Claimed, sqlx::Error> {
        if let Some(claimed) = self.claim_again(worker, limit, lease).await? {
            return Ok(claimed);
        }
        if limit <= SMALL {
            return Desk::claim(self, worker, limit, lease).await;
        }
        let mut connection = self.connections.take().await?;
        let asks = [(worker, limit)];
        let (mut claimed, _) = self.take(&mut connection, &asks, lease, self.look(), vec![]).await?;
        if claimed.iter().all(|claimed| claimed.claims.is_empty()) {
            claimed = self.take(&mut connection, &asks, lease, Look::ALL, vec![]).await?.0;
        }
        connection.give_back();
        Ok(claimed.pop().unwrap_or_default())
    }

    /// What this worker's last claims took, if their answers were lost.
    async fn claim_again(&self, worker: u32, limit: u32, lease: Duration) -> Result<Option<Claimed>, sqlx::Error> {
        let Some(batches) = self.held().unsure(worker) else { return Ok(None) };
        let mut connection = self.connections.take().await?;
        self.count();
        let taken = take::again(&mut connection, &batches, lease).await?;
        connection.give_back();
        let mut held = self.held();
        held.resolve(worker);
        if taken.is_empty() || taken.len() > limit as usize {
            // More than it has room for, which its leases' end will sort out.
            return Ok(None);
        }
        let mut sizes = vec![0; batches.len()];
        let claims = taken.into_iter().map(|taken| {
            let (batch, size) = (batches[taken.part], &mut sizes[taken.part]);
            *size += 1;
            taken.claim(token(batch, *size - 1))
        });
        let claims = claims.collect();
        for (batch, size) in batches.iter().zip(sizes).filter(|(_, size)| *size > 0) {
            held.keep(*batch, size as u32);
        }
        // What else there is has not been looked at.
        Ok(Some(Claimed { claims, next_due: Some(Duration::ZERO) }))
    }

    pub(super) async fn settle(self: &Arc<Self>, settlements: &[Settlement]) -> Result<Settled, sqlx::Error> {
        if settlements.len() <= SMALL as usize {
            return Desk::settle(self, settlements.to_vec()).await;
        }
        let mut connection = self.connections.take().await?;
        let lost = self.end(&mut connection, &settlements.iter().collect::<Vec<_>>()).await?;
        connection.give_back();
        Ok(end::parted(settlements, &lost))
    }

    /// Takes up to so many jobs for each of these workers; says also how many of the batches `finish` were held, which are completed by the
    /// way.
    async fn take(
        &self,
        connection: &mut PgConnection,
        asks: &[(u32, u32)],
        lease: Duration,
        look: Look,
        finish: Vec<i64>,
    ) -> Result<(Vec<Claimed>, usize), sqlx::Error> {
        let limit = asks.iter().map(|(_, limit)| limit).sum();
        let order = Order { limit, lease, look, parts: self.parts(asks), finish };
        self.count();
        let began = Instant::now();
        let haul = match take::take(connection, &order).await {
            Ok(haul) => haul,
            Err(error) => {
                let mut held = self.held();
                order.parts.iter().for_each(|part| held.doubt(part.worker, part.batch));
                return Err(error);
            }
        };
        let found = Found {
            is_full: haul.taken.len() as u32 >= limit,
            reached: haul.taken.iter().filter(|taken| taken.is_fresh).map(|taken| (taken.rank, taken.id)).max(),
            retries: haul.taken.iter().any(|taken| !taken.is_fresh),
            next_due: haul.next_due,
        };
        self.mark.lock().expect("nobody panics while holding it").saw(look, began, found);
        let finished = haul.finished;
        Ok((self.deal(haul, &order, asks), finished))
    }

    /// The batches to be: one for each who asks, or small ones if jobs end one by one.
    fn parts(&self, asks: &[(u32, u32)]) -> Vec<Part> {
        let whole = self.mark.lock().expect("nobody panics while holding it").is_whole();
        let size = if whole { LARGEST } else { SMALL };
        let mut held = self.held();
        let (mut parts, mut end) = (Vec::new(), 0);
        for (ask, &(worker, limit)) in asks.iter().enumerate() {
            let begin = end;
            end += limit;
            let starts = (begin..end).step_by(size as usize);
            parts.extend(starts.map(|start| Part { batch: held.number(), worker, ask, start }));
        }
        parts
    }

    /// Deals out what was taken, to each in claim order.
    fn deal(&self, haul: Haul, order: &Order, asks: &[(u32, u32)]) -> Vec<Claimed> {
        let is_full = haul.taken.len() as u32 >= order.limit;
        let is_empty = haul.taken.is_empty();
        let next_due = match (order.look.retries, is_full || is_empty) {
            (true, _) => haul.next_due,
            (false, true) => None,
            // The next claim looks at everything, and is to come at once. Not this one: what it has would be lost with it if it failed.
            (false, false) => Some(Duration::ZERO),
        };
        let mut taken = haul.taken;
        taken.sort_unstable_by_key(|taken| (taken.part, taken.rank, taken.id));
        let mut all = vec![Claimed { claims: Vec::new(), next_due }; asks.len()];
        let mut sizes = vec![0; order.parts.len()];
        for taken in taken {
            let part = order.parts[taken.part];
            let token = token(part.batch, sizes[taken.part]);
            sizes[taken.part] += 1;
            all[part.ask].claims.push(taken.claim(token));
        }
        let mut held = self.held();
        for (part, size) in order.parts.iter().zip(sizes).filter(|(_, size)| *size > 0) {
            held.keep(part.batch, size as u32);
        }
        all
    }

    /// Settles; returns which claims were lost.
    async fn end(&self, connection: &mut PgConnection, settlements: &[&Settlement]) -> Result<BTreeSet<Token>, sqlx::Error> {
        let batches = by_batch(settlements);
        let extent = self.held().extent(&batches, settlements);
        self.count();
        let lost = end::end(connection, settlements, &batches, extent).await?;
        self.ended(settlements, &batches, extent);
        Ok(lost)
    }

    /// Takes note of what was settled.
    fn ended(&self, settlements: &[&Settlement], batches: &BTreeMap<i64, u32>, extent: Extent) {
        self.held().forget(batches);
        let mut mark = self.mark.lock().expect("nobody panics while holding it");
        mark.set_whole(extent != Extent::Part);
        let back = settlements.iter().filter_map(|settlement| delay(&settlement.how)).min();
        if let Some(soonest) = back {
            mark.expect(soonest);
        }
    }

    pub(super) async fn extend(&self, claims: &[(JobId, Token)], lease: Duration) -> Result<Vec<Token>, sqlx::Error> {
        let batches: BTreeSet<i64> = claims.iter().map(|(_, token)| batch_of(*token)).collect();
        let batches: Vec<i64> = batches.into_iter().collect();
        let mut connection = self.connections.take().await?;
        self.count();
        let held =
            sqlx::query_file_scalar!("src/real/pg/extend.sql", &batches, micros(lease)).fetch_all(&mut *connection).await?;
        connection.give_back();
        Ok(claims.iter().map(|(_, token)| *token).filter(|token| !held.contains(&batch_of(*token))).collect())
    }

    pub(super) async fn reap(&self) -> Result<(u64, u64), sqlx::Error> {
        let mut connection = self.connections.take().await?;
        self.count();
        let reaped = sqlx::query_file!("src/real/pg/reap.sql").fetch_one(&mut *connection).await?;
        connection.give_back();
        if reaped.returned > 0 {
            self.mark.lock().expect("nobody panics while holding it").expect(Duration::ZERO);
        }
        Ok((reaped.returned as u64, reaped.discarded as u64))
    }

    fn look(&self) -> Look {
        if self.strict {
            return Look::ALL;
        }
        self.mark.lock().expect("nobody panics while holding it").look(Instant::now())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nobody panics while holding it")
    }

    fn count(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }
}

/// How soon what this leaves behind may be claimed again, if it leaves something.
fn delay(how: &How) -> Option<Duration> {
    match how {
        How::Retry { after, .. } => Some((*after).min(FAR)),
        How::Release => Some(Duration::ZERO),
        How::Complete | How::Discard { .. } => None,
    }
}
