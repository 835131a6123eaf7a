//! The store's operations: each is one statement, or two, of the `.sql` files beside this one.
//!
//! In lease mode every statement is a transaction of its own. In transaction mode a claim leaves its transaction open, and
//! its settle ends it: the row is locked, and the connection is taken, for as long as the job runs. The article rolls the
//! failed attempt back before it writes the retry; between the two another worker may take the job with its old count. Here
//! the retry is written in the claiming transaction, so nothing is lost.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{Connection, PgTransaction};

use super::{Error, Schema};
use crate::job::{JobId, Memory, State, Why};
use crate::queue::{Claim, ClaimMode, Claimed, How, Settled, Settlement, Token};
use crate::time::nanos;
use crate::worker;
use crate::workload::{Group, Job};

/// Jobs in Postgres.
#[derive(Debug)]
pub struct Store {
    pool: PgPool,
    mode: ClaimMode,
    channel: String,
    held: Mutex<BTreeMap<Token, PgTransaction<'static>>>,
    transactions: AtomicU64,
}

/// A job's row at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// The job.
    pub job: JobId,
    /// Its state.
    pub state: State,
    /// Why it was discarded.
    pub why: Option<Why>,
    /// Retries spent.
    pub retries: u32,
    /// From its creation to when it was last due.
    pub last_due: Duration,
}

impl Store {
    /// Opens the connections that the workers share, all of them, so that none is opened under load.
    ///
    /// # Errors
    /// If the database can't be reached, or has too few connections left.
    pub async fn open(schema: &Schema, workers: &worker::Settings) -> Result<Store, Error> {
        let pool = PgPoolOptions::new()
            .max_connections(workers.connections)
            .min_connections(workers.connections)
            .acquire_timeout(Duration::from_secs(30))
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_with(schema.options().clone())
            .await
            .map_err(Error::Unreachable)?;
        Ok(Store {
            pool,
            mode: workers.claim,
            channel: schema.name().to_owned(),
            held: Mutex::default(),
            transactions: AtomicU64::new(0),
        })
    }

    /// Transactions begun for the workers so far.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// Takes up to `limit` due jobs for `worker`, exclusive for `lease`. In transaction mode one at the most.
    ///
    /// # Errors
    /// Whatever the database says. Jobs may have been claimed all the same; their leases will expire.
    pub async fn claim(&self, worker: u32, limit: u32, lease: Duration) -> Result<Claimed, sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        self.count(2);
        sqlx::query_file!("src/real/pg/promote.sql").execute(&mut *connection).await?;
        if self.mode == ClaimMode::Lease {
            return claim(&mut connection, worker, limit, lease).await;
        }
        let mut transaction = PgTransaction::begin(connection, None).await?;
        let claimed = claim(&mut transaction, worker, 1, lease).await?;
        match claimed.claims.first() {
            Some(claim) => {
                self.held.lock().expect("nobody panics while holding it").insert(claim.token, transaction);
            }
            None => transaction.rollback().await?,
        }
        Ok(claimed)
    }

    /// Ends claims.
    ///
    /// # Errors
    /// Whatever the database says. In lease mode the same settlements can be sent again, whether they were carried out or not.
    pub async fn settle(&self, settlements: &[Settlement]) -> Result<Settled, sqlx::Error> {
        if self.mode == ClaimMode::Lease {
            self.count(1);
            let mut connection = self.pool.acquire().await?;
            return settle(&mut connection, settlements).await;
        }
        let mut all = Settled::default();
        for settlement in settlements {
            let held = self.held.lock().expect("nobody panics while holding it").remove(&settlement.token);
            match held {
                // The claim ended with its transaction: the connection broke, and the database rolled it back.
                None => all.lost.push(settlement.token),
                Some(mut transaction) => match settle(&mut transaction, std::slice::from_ref(settlement)).await {
                    Ok(one) => match transaction.commit().await {
                        Ok(()) => all.settled.extend(one.settled),
                        Err(_) => all.lost.push(settlement.token),
                    },
                    Err(_) => all.lost.push(settlement.token),
                },
            }
        }
        Ok(all)
    }

    /// Makes claims last for `lease` from now; returns those that are no longer held. In transaction mode the open transaction
    /// holds them, and there is nothing to extend.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn extend(&self, claims: &[(JobId, Token)], lease: Duration) -> Result<Vec<Token>, sqlx::Error> {
        if self.mode == ClaimMode::Transaction {
            return Ok(Vec::new());
        }
        self.count(1);
        let mut connection = self.pool.acquire().await?;
        let (jobs, tokens): (Vec<i64>, Vec<i64>) = claims.iter().map(|(job, token)| (job.0 as i64, token.0)).unzip();
        let held =
            sqlx::query_file_scalar!("src/real/pg/extend.sql", &jobs, &tokens, micros(lease)).fetch_all(&mut *connection).await?;
        Ok(claims.iter().map(|(_, token)| *token).filter(|token| !held.contains(&token.0)).collect())
    }

    /// Takes expired claims away; returns how many jobs went back to the queue and how many were given up.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn reap(&self) -> Result<(u64, u64), sqlx::Error> {
        self.count(1);
        let mut connection = self.pool.acquire().await?;
        let ends = sqlx::query_file_scalar!("src/real/pg/reap.sql").fetch_all(&mut *connection).await?;
        let discarded = ends.iter().filter(|discarded| **discarded).count() as u64;
        Ok((ends.len() as u64 - discarded, discarded))
    }

    /// The channel on which new jobs are told of, to workers that listen.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// Ends all open transactions and closes the connections.
    pub async fn close(&self) {
        let held = std::mem::take(&mut *self.held.lock().expect("nobody panics while holding it"));
        drop(held);
        self.pool.close().await;
    }

    fn count(&self, transactions: u64) {
        self.transactions.fetch_add(transactions, Ordering::Relaxed);
    }
}

async fn claim(connection: &mut PgConnection, worker: u32, limit: u32, lease: Duration) -> Result<Claimed, sqlx::Error> {
    let rows =
        sqlx::query_file!("src/real/pg/claim.sql", i64::from(limit), micros(lease), worker as i32).fetch_all(connection).await?;
    let next_due = rows.first().and_then(|row| row.next_due_us).map(from_micros);
    let claims = rows.into_iter().filter_map(|row| {
        Some(Claim {
            job: JobId(row.id? as u64),
            token: Token(row.token?),
            kind: row.kind?.into(),
            payload: row.payload?.into(),
            memory: Memory {
                retries: row.retries? as u32,
                max_retries: row.max_retries? as u32,
                last_delay: row.last_delay_ns.map(|ns| Duration::from_nanos(ns.max(0) as u64)),
                age: from_micros(row.age_us?),
            },
            lag: from_micros(row.lag_us?),
        })
    });
    Ok(Claimed { claims: claims.collect(), next_due })
}

async fn settle(connection: &mut PgConnection, settlements: &[Settlement]) -> Result<Settled, sqlx::Error> {
    let jobs: Vec<i64> = settlements.iter().map(|s| s.job.0 as i64).collect();
    let tokens: Vec<i64> = settlements.iter().map(|s| s.token.0).collect();
    let words: Vec<String> = settlements.iter().map(|s| word(&s.how).to_owned()).collect();
    let delays: Vec<i64> = settlements.iter().map(|s| delay_ns(&s.how)).collect();
    let whys: Vec<Option<String>> = settlements.iter().map(|s| why(&s.how).map(str::to_owned)).collect();
    let failures: Vec<Option<String>> = settlements.iter().map(|s| failure(&s.how)).collect();
    let settled = sqlx::query_file_scalar!(
        "src/real/pg/settle.sql",
        &jobs,
        &tokens,
        &words,
        &delays,
        &whys as &[Option<String>],
        &failures as &[Option<String>]
    )
    .fetch_all(connection)
    .await?;
    let (settled, lost) = tokens.into_iter().map(Token).partition(|token| settled.contains(&token.0));
    Ok(Settled { settled, lost })
}

/// Puts jobs in, due at once, and says so on `channel` if there is one.
///
/// # Errors
/// Whatever the database says.
pub(in crate::real) async fn insert(
    connection: &mut PgConnection,
    jobs: &[Job],
    groups: &[Group],
    max_retries: Option<u32>,
    channel: Option<&str>,
) -> Result<(), sqlx::Error> {
    let group = |job: &Job| &groups[job.group];
    let ids: Vec<i64> = jobs.iter().map(|job| job.id.0 as i64).collect();
    let kinds: Vec<String> = jobs.iter().map(|job| group(job).kind.clone()).collect();
    let payloads: Vec<String> = jobs.iter().map(Job::payload).collect();
    let priorities: Vec<i16> = jobs.iter().map(|job| group(job).priority).collect();
    let limits: Vec<i32> = jobs.iter().map(|job| max_retries.unwrap_or(group(job).max_retries) as i32).collect();
    sqlx::query_file!("src/real/pg/insert.sql", &ids, &kinds, &payloads, &priorities, &limits).execute(&mut *connection).await?;
    if let Some(channel) = channel {
        sqlx::query("SELECT pg_notify($1, '')").bind(channel).execute(connection).await?;
    }
    Ok(())
}

/// Every job's row, by number.
///
/// # Errors
/// Whatever the database says.
pub(in crate::real) async fn rows(schema: &Schema) -> Result<Vec<JobRow>, sqlx::Error> {
    let mut connection = PgConnection::connect_with(schema.options()).await?;
    let rows = sqlx::query_file!("src/real/pg/jobs.sql").fetch_all(&mut connection).await?;
    connection.close().await?;
    let parse = |status: &str| State::ALL.into_iter().find(|state| state.name() == status);
    let rows = rows.into_iter().map(|row| JobRow {
        job: JobId(row.id as u64),
        state: parse(&row.status).expect("a constraint allows these states only"),
        why: row.discarded_why.map(|why| if why == "permanent" { Why::Permanent } else { Why::Exhausted }),
        retries: row.retries as u32,
        last_due: from_micros(row.last_due_us),
    });
    Ok(rows.collect())
}

/// Whether no job is waiting or running.
///
/// # Errors
/// Whatever the database says.
pub(in crate::real) async fn is_idle(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_file_scalar!("src/real/pg/progress.sql").fetch_one(connection).await
}

fn word(how: &How) -> &'static str {
    match how {
        How::Complete => "complete",
        How::Retry { .. } => "retry",
        How::Discard { .. } => "discard",
        How::Release => "release",
    }
}

fn delay_ns(how: &How) -> i64 {
    match how {
        How::Retry { after, .. } => i64::try_from(nanos(*after)).unwrap_or(i64::MAX),
        _ => 0,
    }
}

fn why(how: &How) -> Option<&'static str> {
    match how {
        How::Discard { why: Why::Permanent, .. } => Some("permanent"),
        How::Discard { why: Why::Exhausted, .. } => Some("exhausted"),
        _ => None,
    }
}

fn failure(how: &How) -> Option<String> {
    match how {
        How::Retry { reason, .. } | How::Discard { reason, .. } => Some(reason.clone()),
        How::Complete | How::Release => None,
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn from_micros(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0) as u64)
}
