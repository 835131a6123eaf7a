//! Postgres: a server of our own, and the schema on any server.

pub mod throwaway;

use sqlx::postgres::PgConnectOptions;

/// Brings the database to the schema of this version of simq.
///
/// # Errors
/// If the database cannot be reached or changed.
// Placeholder until there are migrations.
pub async fn migrate(_options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    Ok(())
}
