//! The store's operations, in the words of the worker's commands.
//!
//! Two stores stand behind one picture. [`lease`](super::lease) is the engine: claims in batches under leases, nothing held open. In
//! [`article`](super::article) a claim's transaction stays open until its job is settled, as many home-made queues have it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use super::article::Article;
use super::connections::Connections;
use super::lease::Lease;
use super::{Error, Schema};
use crate::job::JobId;
use crate::queue::{ClaimMode, Claimed, Settled, Settlement, Token};
use crate::worker;

/// Plans as they were measured, whatever the statistics say: a queue's tables are empty at one moment and full at the next, and a
/// plan that reads one from end to end is never the right one. Planning such a statement anew each time costs as much as carrying it out.
pub const PLANS: [(&str, &str); 3] =
    [("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"), ("enable_bitmapscan", "off")];

/// Jobs in Postgres.
#[derive(Debug)]
pub struct Store {
    connections: Connections,
    mode: Mode,
    transactions: AtomicU64,
}

#[derive(Debug)]
enum Mode {
    Lease(Arc<Lease>),
    Transaction(Article),
}

impl Store {
    /// Opens the connections that the workers share, all of them, so that none is opened under load.
    ///
    /// # Errors
    /// If the database can't be reached, or has too few connections left.
    pub async fn open(schema: &Schema, workers: &worker::Settings) -> Result<Store, Error> {
        Store::open_as(schema, workers, false).await
    }

    /// The same, but that each claim looks at everything: slower, and with the order kept to the letter (the module `lease` says how far it is bent otherwise).
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_strict(schema: &Schema, workers: &worker::Settings) -> Result<Store, Error> {
        Store::open_as(schema, workers, true).await
    }

    async fn open_as(schema: &Schema, workers: &worker::Settings, strict: bool) -> Result<Store, Error> {
        let open =
            async |options: &PgConnectOptions| Connections::open(options, workers.connections).await.map_err(Error::Unreachable);
        let (connections, mode) = match workers.claim {
            ClaimMode::Lease => {
                let connections = open(&schema.options().clone().options(PLANS)).await?;
                (connections.clone(), Mode::Lease(Lease::open(connections, strict).await?))
            }
            ClaimMode::Transaction => (open(schema.options()).await?, Mode::Transaction(Article::default())),
        };
        Ok(Store { connections, mode, transactions: AtomicU64::new(0) })
    }

    /// Transactions begun for the workers so far.
    pub fn transactions(&self) -> u64 {
        match &self.mode {
            Mode::Lease(lease) => lease.statements(),
            Mode::Transaction(_) => self.transactions.load(Ordering::Relaxed),
        }
    }

    /// Takes up to `limit` due jobs for `worker`, exclusive for `lease`. In transaction mode one at the most.
    ///
    /// # Errors
    /// Whatever the database says. Jobs may have been claimed all the same; their leases will expire.
    pub async fn claim(&self, worker: u32, limit: u32, lease: Duration) -> Result<Claimed, sqlx::Error> {
        match &self.mode {
            Mode::Lease(engine) => engine.claim(worker, limit, lease).await,
            Mode::Transaction(article) => {
                let connection = self.connections.take().await?;
                self.transactions.fetch_add(1, Ordering::Relaxed);
                article.claim(connection).await
            }
        }
    }

    /// Ends claims. A settlement can be sent again, and is carried out once: a claim that this store has settled before stays settled as it
    /// was.
    ///
    /// # Errors
    /// Whatever the database says. In lease mode the same settlement can be sent again, whether it was carried out or not.
    pub async fn settle(&self, settlements: &[Settlement]) -> Result<Settled, sqlx::Error> {
        match &self.mode {
            Mode::Lease(engine) => engine.settle(settlements).await,
            Mode::Transaction(article) => Ok(article.settle(settlements).await),
        }
    }

    /// Makes claims last for `lease` from now; returns those that are no longer held. In transaction mode the open transaction
    /// holds them, and there is nothing to extend.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn extend(&self, claims: &[(JobId, Token)], lease: Duration) -> Result<Vec<Token>, sqlx::Error> {
        match &self.mode {
            Mode::Lease(engine) => engine.extend(claims, lease).await,
            Mode::Transaction(_) => Ok(Vec::new()),
        }
    }

    /// Takes expired claims away; returns how many jobs went back to the queue and how many were given up.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn reap(&self) -> Result<(u64, u64), sqlx::Error> {
        match &self.mode {
            Mode::Lease(engine) => engine.reap().await,
            Mode::Transaction(_) => Ok((0, 0)),
        }
    }

    /// Whoever held these claims is gone, and what only it could end is ended: its open transactions. Leases run out by themselves.
    pub fn abandon(&self, tokens: &[Token]) {
        if let Mode::Transaction(article) = &self.mode {
            article.drop_some(tokens);
        }
    }

    /// Ends all open transactions and closes the connections.
    pub async fn close(&self) {
        if let Mode::Transaction(article) = &self.mode {
            article.abandon();
        }
        self.connections.close().await;
    }
}

/// Microseconds, as the statements take them.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A duration of microseconds, as the statements give them; what is negative is none.
pub(super) fn from_micros(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0) as u64)
}
