//! The other side of the queue: putting jobs in, and looking at them.

use sqlx::Connection;
use sqlx::postgres::PgConnection;

use super::Schema;
use super::store::from_micros;
use crate::job::{JobId, State, Why};
use crate::metrics::Row;
use crate::queue::ClaimMode;
use crate::workload::{Group, Job};

/// A batch of jobs to put in.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Who puts it in: a number that no worker has. A batch that is sent again, its answer having been lost, is put in once.
    pub producer: i32,
    /// The batch's number, rising from batch to batch.
    pub number: u64,
    /// The jobs.
    pub jobs: &'a [Job],
    /// Their groups.
    pub groups: &'a [Group],
    /// Retries allowed, in place of each group's number.
    pub max_retries: Option<u32>,
}

/// Puts jobs in, due at once, for workers that claim in this mode.
///
/// # Errors
/// Whatever the database says; the batch can be sent again.
pub async fn insert(connection: &mut PgConnection, batch: Batch<'_>, mode: ClaimMode) -> Result<(), sqlx::Error> {
    let group = |job: &Job| &batch.groups[job.group];
    let jobs = batch.jobs.iter();
    let ids: Vec<i64> = jobs.clone().map(|job| job.id.0 as i64).collect();
    let kinds: Vec<String> = jobs.clone().map(|job| group(job).kind.clone()).collect();
    let payloads: Vec<String> = jobs.clone().map(Job::payload).collect();
    let priorities: Vec<i32> = jobs.clone().map(|job| i32::from(group(job).priority)).collect();
    let limits: Vec<i32> = jobs.map(|job| batch.max_retries.unwrap_or(group(job).max_retries) as i32).collect();
    let (producer, number) = (batch.producer, batch.number as i64);
    match mode {
        ClaimMode::Lease => {
            sqlx::query_file!("src/real/pg/insert.sql", producer, number, &ids, &kinds, &payloads, &priorities, &limits)
                .execute(connection)
                .await?
        }
        ClaimMode::Transaction => {
            sqlx::query_file!("src/real/pg/article/insert.sql", &ids, &kinds, &payloads, &priorities, &limits)
                .execute(connection)
                .await?
        }
    };
    Ok(())
}

/// Tells workers that listen on `channel` that there are new jobs: once for a batch, since a commit that notifies takes a lock that all
/// such commits share.
///
/// # Errors
/// Whatever the database says.
pub async fn announce(connection: &mut PgConnection, channel: &str) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_notify($1, '')").bind(channel).execute(connection).await.map(drop)
}

/// Every job's row, by number.
///
/// # Errors
/// Whatever the database says.
pub async fn rows(schema: &Schema) -> Result<Vec<Row>, sqlx::Error> {
    let mut connection = PgConnection::connect_with(schema.options()).await?;
    let rows = sqlx::query_file!("src/real/pg/jobs.sql").fetch_all(&mut connection).await?;
    connection.close().await?;
    let parse = |status: &str| State::ALL.into_iter().find(|state| state.name() == status);
    let rows = rows.into_iter().map(|row| Row {
        job: JobId(row.id as u64),
        state: parse(&row.status).expect("the view knows these states only"),
        why: row.why.map(|why| if why == "permanent" { Why::Permanent } else { Why::Exhausted }),
        retries: row.retries as u32,
        last_due: from_micros(row.last_due_us),
    });
    Ok(rows.collect())
}

/// Whether no job is waiting or running.
///
/// # Errors
/// Whatever the database says.
pub async fn is_idle(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_file_scalar!("src/real/pg/progress.sql").fetch_one(connection).await
}
