//! What a report must say of the database: the settings that decide what was measured.

use std::collections::BTreeMap;

use sqlx::postgres::PgConnection;

use super::Error;

const REPORTED: [&str; 12] = [
    "server_version",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "wal_level",
    "shared_buffers",
    "max_connections",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
    "huge_pages",
];

/// The settings that the server runs with, as it shows them itself, under `postgres.<name>`.
///
/// # Errors
/// If the database can't be reached.
pub async fn settings(connection: &mut PgConnection) -> Result<BTreeMap<String, String>, Error> {
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT name, current_setting(name) FROM unnest($1::text[]) AS name WHERE current_setting(name, true) IS NOT NULL",
    )
    .bind(REPORTED.map(str::to_owned).to_vec())
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|(name, value)| (format!("postgres.{name}"), value)).collect())
}
