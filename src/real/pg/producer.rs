//! The other side of the queue: putting jobs in, and looking at them.

use std::fmt::Write;

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
    /// Who puts it in: see [`enlist`]. A batch that is sent again, its answer having been lost, is put in once.
    pub producer: i64,
    /// The batch's number, rising from batch to batch.
    pub number: u64,
    /// The jobs.
    pub jobs: &'a [Job],
    /// Their groups.
    pub groups: &'a [Group],
    /// Retries allowed, in place of each group's number.
    pub max_retries: Option<u32>,
}

/// A number for a producer, that no other of this schema has.
///
/// # Errors
/// Whatever the database says.
pub async fn enlist(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_file_scalar!("src/real/pg/instance.sql").fetch_one(connection).await
}

/// Puts jobs in, due at once, for workers that claim in this mode.
///
/// # Errors
/// Whatever the database says; the batch can be sent again, on another connection.
pub async fn insert(connection: &mut PgConnection, batch: Batch<'_>, mode: ClaimMode) -> Result<(), sqlx::Error> {
    match mode {
        ClaimMode::Lease => state(connection, batch).await,
        ClaimMode::Transaction => state_for_the_article(connection, batch).await,
    }
}

/// Puts jobs in by one statement, whatever their number, for workers that claim under leases.
///
/// # Errors
/// As [`insert`].
pub async fn state(connection: &mut PgConnection, batch: Batch<'_>) -> Result<(), sqlx::Error> {
    let (producer, number, columns) = (batch.producer, batch.number as i64, Columns::of(batch));
    let Columns { ids, kinds, payloads, priorities, limits } = &columns;
    sqlx::query_file!("src/real/pg/insert.sql", producer, number, ids, kinds, payloads, priorities, limits)
        .execute(connection)
        .await
        .map(drop)
}

/// Puts jobs in by COPY, whatever their number, for workers that claim under leases. Its round trips (five, where the statement needs one)
/// cost as much as it saves up to a thousand jobs at least, so [`insert`] does not use it: `cargo bench --bench engine -- putting`.
///
/// # Errors
/// As [`insert`].
pub async fn copy(connection: &mut PgConnection, batch: Batch<'_>) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let received = sqlx::query_file!("src/real/pg/receive.sql", batch.producer, batch.number as i64);
    if received.execute(&mut *transaction).await?.rows_affected() == 0 {
        return transaction.rollback().await;
    }
    let mut lines = String::with_capacity(96 * batch.jobs.len());
    for job in batch.jobs {
        let group = &batch.groups[job.group];
        let retries = batch.max_retries.unwrap_or(group.max_retries);
        // Writing to a string can't fail.
        let _ = write!(lines, "{}\t{}\t{retries}\t", job.id.0, -i32::from(group.priority));
        escape(&group.kind, &mut lines);
        lines.push('\t');
        escape(&job.payload(), &mut lines);
        lines.push('\n');
    }
    let mut copying = transaction.copy_in_raw("COPY ready (id, rank, max_retries, type, payload) FROM STDIN").await?;
    copying.send(lines.into_bytes()).await?;
    copying.finish().await?;
    transaction.commit().await
}

/// A field as COPY's text format has it.
fn escape(field: &str, line: &mut String) {
    for character in field.chars() {
        match character {
            '\\' => line.push_str("\\\\"),
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            other => line.push(other),
        }
    }
}

async fn state_for_the_article(connection: &mut PgConnection, batch: Batch<'_>) -> Result<(), sqlx::Error> {
    let Columns { ids, kinds, payloads, priorities, limits } = &Columns::of(batch);
    sqlx::query_file!("src/real/pg/article/insert.sql", ids, kinds, payloads, priorities, limits)
        .execute(connection)
        .await
        .map(drop)
}

/// A batch as the columns that the statements take.
struct Columns {
    ids: Vec<i64>,
    kinds: Vec<String>,
    payloads: Vec<String>,
    priorities: Vec<i32>,
    limits: Vec<i32>,
}

impl Columns {
    fn of(batch: Batch<'_>) -> Columns {
        let group = |job: &Job| &batch.groups[job.group];
        let jobs = batch.jobs.iter();
        Columns {
            ids: jobs.clone().map(|job| job.id.0 as i64).collect(),
            kinds: jobs.clone().map(|job| group(job).kind.clone()).collect(),
            payloads: jobs.clone().map(Job::payload).collect(),
            priorities: jobs.clone().map(|job| i32::from(group(job).priority)).collect(),
            limits: jobs.map(|job| batch.max_retries.unwrap_or(group(job).max_retries) as i32).collect(),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_copy_would_take_for_its_own_is_escaped() {
        let mut line = String::new();
        escape("a\\b\tc\nd\re{\"é\"}", &mut line);
        assert_eq!(line, "a\\\\b\\tc\\nd\\re{\"é\"}");
    }
}
