//! The engine: a claim moves jobs from the queue under a lease, in one statement and one short transaction; a settlement moves them on.
//!
//! * A lease is one row for a batch of jobs. A batch whose jobs all completed is settled by deleting that row; otherwise the
//!   settled jobs are taken out of it.
//! * A claim goes on from where the last one was (the mark), so that the dead rows behind it cost nothing, even while an old
//!   transaction somewhere keeps them from being vacuumed, and it passes the retries by while none can be due. Every
//!   [`Mark::REST`], or ten times as long as that takes, when a retry of this process may be due, and whenever a claim found less than it asked
//!   for, one looks at everything, from the beginning: so long may a new job of higher priority, or another process's retry, be overlooked.
//! * Each settlement carries its worker's number for it. One that is sent again, because its answer was lost, is carried out once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use super::settlement::{delay_ns, failure, why, word};
use super::store::{from_micros, micros};
use crate::job::{JobId, Memory};
use crate::queue::{Claim, Claimed, How, Settled, Settlement, Token};

/// Most jobs under one lease. Small enough that taking a few jobs out of it is cheap, large enough that its row is.
const LEASE_SIZE: i64 = 64;
/// Far beyond any run; an instant so far away can still be counted.
const FAR: Duration = Duration::from_secs(100 * 366 * 86_400);
/// A token is a lease's number and the job's place under it.
const PLACES: i64 = 1024;

/// What this process knows of its leases and of its place in the queue.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// The claims left under each lease that this process took, ascending.
    left: Mutex<BTreeMap<i64, Vec<Token>>>,
    mark: Mutex<Mark>,
    strict: bool,
    /// Claims that took two statements.
    second_looks: AtomicU64,
}

/// Where the last claim ended, and what is known of the retries.
#[derive(Clone, Copy, Debug)]
struct Mark {
    rank: i32,
    id: i64,
    /// When a claim last looked at everything, from the beginning and at the retries, and how long it took.
    looked: Option<(Instant, Duration)>,
    /// No retry is due before this, as far as this process knows.
    no_retry_before: Option<Instant>,
    /// The last settlement took whole leases: large ones are worth while.
    whole: bool,
}

impl Default for Mark {
    fn default() -> Mark {
        Mark { rank: i32::MIN, id: 0, looked: None, no_retry_before: None, whole: true }
    }
}

impl Mark {
    /// How long claims may go on from the mark before one looks at everything.
    const REST: Duration = Duration::from_millis(100);

    /// Whether a claim of so many may go on from the mark and pass the retries by.
    fn goes_on(&self, limit: u32, now: Instant) -> bool {
        let fresh = self.looked.is_some_and(|(at, took)| now.duration_since(at) < (took * 10).max(Mark::REST));
        fresh && self.no_retry_before.is_none_or(|at| now < at) && (self.whole || i64::from(limit) <= LEASE_SIZE)
    }
}

impl Lease {
    /// From now on each claim looks at everything.
    pub(super) fn look_each_time(&mut self) {
        self.strict = true;
    }

    /// Transactions beyond one for each call.
    pub(super) fn second_looks(&self) -> u64 {
        self.second_looks.load(Ordering::Relaxed)
    }

    pub(super) async fn claim(
        &self,
        connection: &mut PgConnection,
        worker: u32,
        limit: u32,
        lease: Duration,
    ) -> Result<Claimed, sqlx::Error> {
        let mark = *self.mark.lock().expect("nobody panics while holding it");
        if self.strict || !mark.goes_on(limit, Instant::now()) {
            return self.claim_all(connection, worker, limit, lease).await;
        }
        let claims = self.claim_new(connection, worker, limit, lease, mark).await?;
        if claims.is_empty() {
            self.second_looks.fetch_add(1, Ordering::Relaxed);
            return self.claim_all(connection, worker, limit, lease).await;
        }
        if claims.len() == limit as usize {
            return Ok(Claimed { claims, next_due: None });
        }
        // The next claim looks at everything, and is to come at once. Not this one: what it has would be lost with it if it failed.
        self.mark.lock().expect("nobody panics while holding it").looked = None;
        Ok(Claimed { claims, next_due: Some(Duration::ZERO) })
    }

    /// New jobs only, from the mark on.
    async fn claim_new(
        &self,
        connection: &mut PgConnection,
        worker: u32,
        limit: u32,
        lease: Duration,
        mark: Mark,
    ) -> Result<Vec<Claim>, sqlx::Error> {
        let (limit, lease, worker) = (i64::from(limit), micros(lease), worker as i32);
        let mut rows = sqlx::query_file!("src/real/pg/claim_new.sql", limit, lease, worker, mark.rank, mark.id)
            .fetch_all(connection)
            .await?;
        rows.sort_unstable_by_key(|row| (row.rank, row.id));
        if let Some(last) = rows.last() {
            self.go_on((last.rank, last.id));
            let tokens = (0..rows.len() as i64).map(|place| Token(last.lease * PLACES + place)).collect();
            self.left.lock().expect("nobody panics while holding it").insert(last.lease, tokens);
        }
        let claim = rows.into_iter().enumerate().map(|(place, row)| Claim {
            job: JobId(row.id as u64),
            token: Token(row.lease * PLACES + place as i64),
            kind: row.kind.into(),
            payload: row.payload.into(),
            memory: memory(row.retries, row.max_retries, row.last_delay_ns, row.age_us),
            lag: from_micros(row.lag_us),
        });
        Ok(claim.collect())
    }

    /// New jobs from the beginning, and retries that are due.
    async fn claim_all(
        &self,
        connection: &mut PgConnection,
        worker: u32,
        limit: u32,
        lease: Duration,
    ) -> Result<Claimed, sqlx::Error> {
        let began = Instant::now();
        let (limit, lease, worker) = (i64::from(limit), micros(lease), worker as i32);
        let rows = sqlx::query_file!("src/real/pg/claim.sql", limit, lease, worker, LEASE_SIZE).fetch_all(connection).await?;
        let next_due = rows.first().and_then(|row| row.next_due_us).map(from_micros);
        let mut left = self.left.lock().expect("nobody panics while holding it");
        let mut reached = None;
        let mut retries = false;
        let claims = rows.into_iter().filter_map(|row| {
            let lease = row.lease?;
            let token = Token(lease * PLACES + row.place? % LEASE_SIZE);
            left.entry(lease).or_default().push(token);
            match row.is_fresh? {
                true => reached = reached.max(Some((row.rank?, row.id?))),
                false => retries = true,
            }
            Some(Claim {
                job: JobId(row.id? as u64),
                token,
                kind: row.kind?.into(),
                payload: row.payload?.into(),
                memory: memory(row.retries?, row.max_retries?, row.last_delay_ns, row.age_us?),
                lag: from_micros(row.lag_us?),
            })
        });
        let claims: Vec<Claim> = claims.collect();
        drop(left);
        // Where retries were due there may be more of them, and where fewer jobs than asked for were found the queue may be empty: then
        // the next claim looks at everything too.
        let full = claims.len() as i64 == limit && !retries;
        self.look(began, reached.filter(|_| full), next_due);
        Ok(Claimed { claims, next_due })
    }

    /// A claim from the mark got so far.
    fn go_on(&self, reached: (i32, i64)) {
        let mut mark = self.mark.lock().expect("nobody panics while holding it");
        if reached > (mark.rank, mark.id) {
            (mark.rank, mark.id) = reached;
        }
    }

    /// A claim looked at everything and got so far; `None` if there is no going on from there.
    fn look(&self, began: Instant, reached: Option<(i32, i64)>, next_due: Option<Duration>) {
        let mut mark = self.mark.lock().expect("nobody panics while holding it");
        let Some((rank, id)) = reached else {
            mark.looked = None;
            return;
        };
        mark.no_retry_before = next_due.map(|after| began + after);
        (mark.rank, mark.id, mark.looked) = (rank, id, Some((began, began.elapsed())));
    }

    pub(super) async fn settle(
        &self,
        connection: &mut PgConnection,
        worker: u32,
        number: u64,
        settlements: &[Settlement],
    ) -> Result<Settled, sqlx::Error> {
        let leases = by_lease(settlements);
        let whole = settlements.iter().all(|settlement| settlement.how == How::Complete) && self.are_whole(&leases);
        let settled = match whole {
            true => finish(connection, worker, number, settlements, &leases).await?,
            false => settle(connection, worker, number, settlements).await?,
        };
        self.forget(&leases);
        let mut mark = self.mark.lock().expect("nobody panics while holding it");
        mark.whole = whole;
        if settlements.iter().any(|settlement| matches!(settlement.how, How::Retry { .. } | How::Release)) {
            // When exactly it is due is the server's to know; not before the shortest delay is over.
            let soonest = settlements.iter().map(|settlement| delay(&settlement.how)).min().unwrap_or_default();
            let due = Instant::now() + soonest;
            mark.no_retry_before = Some(mark.no_retry_before.map_or(due, |at| at.min(due)));
        }
        Ok(settled)
    }

    /// Whether these are all the claims that are left under their leases.
    fn are_whole(&self, leases: &BTreeMap<i64, Vec<Token>>) -> bool {
        let left = self.left.lock().expect("nobody panics while holding it");
        leases.iter().all(|(lease, tokens)| left.get(lease) == Some(tokens))
    }

    fn forget(&self, leases: &BTreeMap<i64, Vec<Token>>) {
        let mut left = self.left.lock().expect("nobody panics while holding it");
        for (lease, tokens) in leases {
            if let Some(still) = left.get_mut(lease) {
                still.retain(|token| tokens.binary_search(token).is_err());
                if still.is_empty() {
                    left.remove(lease);
                }
            }
        }
    }

    pub(super) async fn extend(
        &self,
        connection: &mut PgConnection,
        claims: &[(JobId, Token)],
        lease: Duration,
    ) -> Result<Vec<Token>, sqlx::Error> {
        let leases: BTreeSet<i64> = claims.iter().map(|(_, token)| lease_of(*token)).collect();
        let leases: Vec<i64> = leases.into_iter().collect();
        let held = sqlx::query_file_scalar!("src/real/pg/extend.sql", &leases, micros(lease)).fetch_all(connection).await?;
        Ok(claims.iter().map(|(_, token)| *token).filter(|token| !held.contains(&lease_of(*token))).collect())
    }

    pub(super) async fn reap(&self, connection: &mut PgConnection) -> Result<(u64, u64), sqlx::Error> {
        let reaped = sqlx::query_file!("src/real/pg/reap.sql").fetch_one(connection).await?;
        Ok((reaped.returned as u64, reaped.discarded as u64))
    }
}

/// How soon what this leaves behind may be claimed again.
fn delay(how: &How) -> Duration {
    match how {
        How::Retry { after, .. } => (*after).min(FAR),
        How::Release => Duration::ZERO,
        How::Complete | How::Discard { .. } => FAR,
    }
}

fn memory(retries: i32, max_retries: i32, last_delay_ns: Option<i64>, age_us: i64) -> Memory {
    Memory {
        retries: retries as u32,
        max_retries: max_retries as u32,
        last_delay: last_delay_ns.map(|ns| Duration::from_nanos(ns.max(0) as u64)),
        age: from_micros(age_us),
    }
}

/// The settlements' claims by their lease, ascending.
fn by_lease(settlements: &[Settlement]) -> BTreeMap<i64, Vec<Token>> {
    let mut leases: BTreeMap<i64, Vec<Token>> = BTreeMap::new();
    for settlement in settlements {
        leases.entry(lease_of(settlement.token)).or_default().push(settlement.token);
    }
    leases.values_mut().for_each(|tokens| tokens.sort_unstable());
    leases
}

fn lease_of(token: Token) -> i64 {
    token.0 / PLACES
}

/// Completes whole leases.
async fn finish(
    connection: &mut PgConnection,
    worker: u32,
    number: u64,
    settlements: &[Settlement],
    leases: &BTreeMap<i64, Vec<Token>>,
) -> Result<Settled, sqlx::Error> {
    let leases: Vec<i64> = leases.keys().copied().collect();
    let rows =
        sqlx::query_file!("src/real/pg/finish.sql", worker as i32, number as i64, &leases).fetch_all(&mut *connection).await?;
    let held: BTreeSet<i64> = match rows.is_empty() {
        false => rows.into_iter().filter_map(|row| row.lease).collect(),
        true => {
            let lost = recall(connection, worker).await?;
            leases.into_iter().filter(|lease| !lost.contains(lease)).collect()
        }
    };
    Ok(parted(settlements, |settlement| held.contains(&lease_of(settlement.token))))
}

/// Settles jobs one by one, under whatever leases they are.
async fn settle(
    connection: &mut PgConnection,
    worker: u32,
    number: u64,
    settlements: &[Settlement],
) -> Result<Settled, sqlx::Error> {
    let column = |of: fn(&Settlement) -> i64| settlements.iter().map(of).collect::<Vec<i64>>();
    let words: Vec<String> = settlements.iter().map(|s| word(&s.how).to_owned()).collect();
    let whys: Vec<Option<String>> = settlements.iter().map(|s| why(&s.how).map(str::to_owned)).collect();
    let failures: Vec<Option<String>> = settlements.iter().map(|s| failure(&s.how).map(str::to_owned)).collect();
    let rows = sqlx::query_file!(
        "src/real/pg/settle.sql",
        worker as i32,
        number as i64,
        &column(|s| lease_of(s.token)),
        &column(|s| s.job.0 as i64),
        &words,
        &column(|s| delay_ns(&s.how)),
        &whys as &[Option<String>],
        &failures as &[Option<String>]
    )
    .fetch_all(&mut *connection)
    .await?;
    if rows.is_empty() {
        let lost = recall(connection, worker).await?;
        return Ok(parted(settlements, |settlement| !lost.contains(&(settlement.job.0 as i64))));
    }
    let held: BTreeSet<(i64, i64)> = rows.into_iter().filter_map(|row| Some((row.lease?, row.job?))).collect();
    Ok(parted(settlements, |settlement| held.contains(&(lease_of(settlement.token), settlement.job.0 as i64))))
}

/// What the settlement that has just turned out to have been carried out before found lost.
async fn recall(connection: &mut PgConnection, worker: u32) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_file_scalar!("src/real/pg/recall.sql", worker as i32).fetch_one(connection).await
}

fn parted(settlements: &[Settlement], is_settled: impl Fn(&Settlement) -> bool) -> Settled {
    let (settled, lost): (Vec<&Settlement>, Vec<&Settlement>) = settlements.iter().partition(|settlement| is_settled(settlement));
    let tokens = |of: Vec<&Settlement>| of.into_iter().map(|settlement| settlement.token).collect();
    Settled { settled: tokens(settled), lost: tokens(lost) }
}
