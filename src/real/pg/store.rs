//! The store's operations, in the words of the worker's commands.
//!
//! Two stores stand behind one picture. [`lease`](super::lease) is the engine: claims in batches under leases, nothing held open. In
//! [`article`](super::article) a claim's transaction stays open until its job is settled, as many home-made queues have it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::article::Article;
use super::connections::Connections;
use super::lease::Lease;
use super::{Error, Schema};
use crate::job::JobId;
use crate::queue::{ClaimMode, Claimed, Settled, Settlement, Token};
use crate::worker;

/// Jobs in Postgres.
#[derive(Debug)]
pub struct Store {
    connections: Connections,
    mode: Mode,
    transactions: AtomicU64,
}

#[derive(Debug)]
enum Mode {
    Lease(Lease),
    Transaction(Article),
}

impl Store {
    /// Opens the connections that the workers share, all of them, so that none is opened under load.
    ///
    /// # Errors
    /// If the database can't be reached, or has too few connections left.
    pub async fn open(schema: &Schema, workers: &worker::Settings) -> Result<Store, Error> {
        let connections = Connections::open(schema.options(), workers.connections).await.map_err(Error::Unreachable)?;
        let mode = match workers.claim {
            ClaimMode::Lease => Mode::Lease(Lease::default()),
            ClaimMode::Transaction => Mode::Transaction(Article::default()),
        };
        Ok(Store { connections, mode, transactions: AtomicU64::new(0) })
    }

    /// The same, but that each claim looks at everything: slower, and with the order kept to the letter (the module `lease` says how far it is bent otherwise).
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn open_strict(schema: &Schema, workers: &worker::Settings) -> Result<Store, Error> {
        let mut store = Store::open(schema, workers).await?;
        if let Mode::Lease(leases) = &mut store.mode {
            leases.look_each_time();
        }
        Ok(store)
    }

    /// Transactions begun for the workers so far.
    pub fn transactions(&self) -> u64 {
        let more = match &self.mode {
            Mode::Lease(leases) => leases.second_looks(),
            Mode::Transaction(_) => 0,
        };
        self.transactions.load(Ordering::Relaxed) + more
    }

    /// Takes up to `limit` due jobs for `worker`, exclusive for `lease`. In transaction mode one at the most.
    ///
    /// # Errors
    /// Whatever the database says. Jobs may have been claimed all the same; their leases will expire.
    pub async fn claim(&self, worker: u32, limit: u32, lease: Duration) -> Result<Claimed, sqlx::Error> {
        let mut connection = self.connections.take().await?;
        self.count();
        match &self.mode {
            Mode::Lease(leases) => {
                let claimed = leases.claim(&mut connection, worker, limit, lease).await?;
                connection.give_back();
                Ok(claimed)
            }
            Mode::Transaction(article) => article.claim(connection).await,
        }
    }

    /// Ends claims, as settlement number `number` of this worker: numbers rise from settlement to settlement, and one that is sent
    /// again keeps its number and is carried out once.
    ///
    /// # Errors
    /// Whatever the database says. In lease mode the same settlement can be sent again, whether it was carried out or not.
    pub async fn settle(&self, worker: u32, number: u64, settlements: &[Settlement]) -> Result<Settled, sqlx::Error> {
        match &self.mode {
            Mode::Lease(leases) => {
                let mut connection = self.connections.take().await?;
                self.count();
                let settled = leases.settle(&mut connection, worker, number, settlements).await?;
                connection.give_back();
                Ok(settled)
            }
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
            Mode::Transaction(_) => Ok(Vec::new()),
            Mode::Lease(leases) => {
                let mut connection = self.connections.take().await?;
                self.count();
                let lost = leases.extend(&mut connection, claims, lease).await?;
                connection.give_back();
                Ok(lost)
            }
        }
    }

    /// Takes expired claims away; returns how many jobs went back to the queue and how many were given up.
    ///
    /// # Errors
    /// Whatever the database says.
    pub async fn reap(&self) -> Result<(u64, u64), sqlx::Error> {
        match &self.mode {
            Mode::Transaction(_) => Ok((0, 0)),
            Mode::Lease(leases) => {
                let mut connection = self.connections.take().await?;
                self.count();
                let reaped = leases.reap(&mut connection).await?;
                connection.give_back();
                Ok(reaped)
            }
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

    fn count(&self) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
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
