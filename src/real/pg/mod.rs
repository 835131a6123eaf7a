//! The queue in Postgres: one schema per run, one file per query.
//!
//! The promises are those of [`crate::queue`]; the statements that keep them are the `.sql` files beside this one, checked
//! against the schema in `migrations/` when they are compiled. simq works in a schema of its own, so that a database of the
//! user's can be lent to it, and two runs in one database do not meet.

mod article;
mod connections;
mod facts;
mod lease;
mod producer;
mod settlement;
mod store;
pub mod throwaway;

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};

pub use facts::settings;
pub use producer::{Batch, announce, copy, enlist, insert, is_idle, rows, state};
pub use store::{PLANS, Store};

/// The oldest server that is supported, as `server_version_num` counts.
const OLDEST_SERVER: i32 = 140_000;

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be reached, or refused a statement.
    #[error("the database said: {0}")]
    Database(#[from] sqlx::Error),
    /// A migration failed.
    #[error("the queue's tables could not be made: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The URL makes no sense.
    #[error("the database URL is not valid ({0}): write it as postgres://user:password@host:5432/database")]
    Url(sqlx::Error),
    /// The server is too old.
    #[error("the server is PostgreSQL {found}: simq needs 14 or newer")]
    TooOld {
        /// Its version.
        found: String,
    },
    /// The server can't be reached.
    #[error("can't connect to the database ({0}): check that it runs and that the URL is right")]
    Unreachable(sqlx::Error),
}

/// How to connect to the database of a URL.
///
/// # Errors
/// [`Error::Url`] if it is not one.
pub fn parse_url(url: &str) -> Result<PgConnectOptions, Error> {
    // sqlx would take any scheme, and look for a Postgres where the URL says that there is none.
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    if let Some(other) = scheme.filter(|scheme| !matches!(*scheme, "postgres" | "postgresql")) {
        return Err(Error::Url(sqlx::Error::Configuration(format!("its scheme is `{other}`").into())));
    }
    let options: PgConnectOptions = url.parse().map_err(Error::Url)?;
    Ok(options.application_name("simq"))
}

/// Connects once, to see that the database is there and new enough.
///
/// # Errors
/// [`Error::Unreachable`], [`Error::TooOld`].
pub async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Error> {
    let connecting = PgConnection::connect_with(options);
    let mut connection = tokio::time::timeout(Duration::from_secs(10), connecting)
        .await
        .unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
        .map_err(Error::Unreachable)?;
    let (number, found): (i32, String) =
        sqlx::query_as("SELECT current_setting('server_version_num')::int, current_setting('server_version')")
            .fetch_one(&mut connection)
            .await?;
    if number < OLDEST_SERVER {
        return Err(Error::TooOld { found });
    }
    Ok(connection)
}

/// A schema of simq's own.
#[derive(Clone, Debug)]
pub struct Schema {
    name: String,
    options: PgConnectOptions,
}

impl Schema {
    /// Creates the schema and the queue in it. `note` is kept as its comment, so that whoever finds it knows what it is.
    ///
    /// # Errors
    /// If the database refuses: the name is taken, or the user may not create schemas there.
    pub async fn create(database: &PgConnectOptions, name: &str, note: &str) -> Result<Schema, Error> {
        assert!(is_plain(name), "a schema's name is made by simq: {name}");
        let mut connection = connect(database).await?;
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {name}"))).execute(&mut connection).await?;
        let comment = format!("COMMENT ON SCHEMA {name} IS '{}'", note.replace('\'', "''"));
        sqlx::raw_sql(AssertSqlSafe(comment)).execute(&mut connection).await?;
        connection.close().await?;
        let schema = Schema { name: name.to_owned(), options: inside(database, name) };
        match migrate(&schema.options).await {
            Ok(()) => Ok(schema),
            Err(error) => {
                // What kept the tables from being made is what the caller must hear of, not what kept this from working.
                let _ = schema.drop().await;
                Err(error)
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect so that unqualified names are this schema's.
    pub fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// The same schema by another way, such as a proxy's.
    pub fn reached_by(&self, options: PgConnectOptions) -> Schema {
        Schema { name: self.name.clone(), options }
    }

    /// Drops it with all that is in it.
    ///
    /// # Errors
    /// If the database can't be reached.
    pub async fn drop(self) -> Result<(), Error> {
        let mut connection = PgConnection::connect_with(&self.options).await?;
        let statement = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }
}

/// Applies the migrations to the schema that these options lead to. Several processes may do so at once.
///
/// # Errors
/// If the database refuses.
pub async fn migrate(options: &PgConnectOptions) -> Result<(), Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    sqlx::migrate!("./migrations").run(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// Schemas in this database that an interrupted run of simq left behind, or that were kept on purpose.
///
/// # Errors
/// If the database can't be reached.
pub async fn leftovers(connection: &mut PgConnection) -> Result<Vec<String>, Error> {
    let rows: Vec<(String,)> = sqlx::query_as(
        "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'simq\\_%' AND obj_description(oid, 'pg_namespace') LIKE 'simq %' ORDER BY 1",
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|(name,)| name).collect())
}

fn inside(database: &PgConnectOptions, schema: &str) -> PgConnectOptions {
    // By its name a run knows its own connections.
    let named = database.clone().application_name(schema);
    named.options([("search_path", schema), ("default_transaction_isolation", "read committed")])
}

fn is_plain(name: &str) -> bool {
    name.len() <= 63 && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
