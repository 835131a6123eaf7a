//! The connections that the workers share: opened once, handed round, and opened again when one breaks.
//!
//! sqlx's own pool asks the server whether a connection is alive each time one is given back: a round trip for every statement, which is what
//! the engine's statements cost themselves. Here a connection on which a statement failed is dropped, and the next who needs one opens it.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use futures_util::future::try_join_all;
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A fixed number of connections. Copies share them.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    options: PgConnectOptions,
    idle: Arc<Mutex<Vec<PgConnection>>>,
    permits: Arc<Semaphore>,
}

/// A connection that nobody else has. It goes back by [`Lent::give_back`]; dropped, it is closed, and its place is free for a new one.
#[derive(Debug)]
pub(super) struct Lent {
    connection: PgConnection,
    idle: Arc<Mutex<Vec<PgConnection>>>,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// Opens `count` connections, all of them, so that none is opened under load.
    pub(super) async fn open(options: &PgConnectOptions, count: u32) -> Result<Connections, sqlx::Error> {
        let idle = try_join_all((0..count).map(|_| PgConnection::connect_with(options))).await?;
        let permits = Arc::new(Semaphore::new(count as usize));
        Ok(Connections { options: options.clone(), idle: Arc::new(Mutex::new(idle)), permits })
    }

    /// A connection, as soon as there is one.
    pub(super) async fn take(&self) -> Result<Lent, sqlx::Error> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let idle = self.idle.lock().expect("nobody panics while holding it").pop();
        let connection = match idle {
            Some(connection) => connection,
            None => PgConnection::connect_with(&self.options).await?,
        };
        Ok(Lent { connection, idle: self.idle.clone(), _permit: permit })
    }

    /// Closes what is idle; nothing can be taken any more.
    pub(super) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle.lock().expect("nobody panics while holding it"));
        for connection in idle {
            // A connection that can't be closed politely is closed by being dropped.
            let _ = connection.close().await;
        }
    }
}

impl Lent {
    /// For the next who needs one. Only a connection whose last statement went well may go back.
    pub(super) fn give_back(self) {
        self.idle.lock().expect("nobody panics while holding it").push(self.connection);
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
