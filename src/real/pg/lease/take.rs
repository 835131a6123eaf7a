//! The statements that claim.

use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::super::store::micros;
use super::mark::Look;
use super::row::Taken;

/// What is asked for in one statement.
#[derive(Debug)]
pub(super) struct Order {
    /// Most jobs.
    pub(super) limit: u32,
    /// How long they are exclusive.
    pub(super) lease: Duration,
    /// What to look at.
    pub(super) look: Look,
    /// The batches that they make, in order.
    pub(super) parts: Vec<Part>,
    /// Batches to complete by the way.
    pub(super) finish: Vec<i64>,
}

/// A batch to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its number.
    pub(super) batch: i64,
    /// Whose.
    pub(super) worker: u32,
    /// Which of those who asked.
    pub(super) ask: usize,
    /// Its first job's place among all.
    pub(super) start: u32,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Haul {
    /// The jobs, in no order.
    pub(super) taken: Vec<Taken>,
    /// How long until the next retry is due, if there is one and the claim looked.
    pub(super) next_due: Option<Duration>,
    /// How many of the batches to complete were held.
    pub(super) finished: usize,
}

/// Takes jobs.
pub(super) async fn take(connection: &mut PgConnection, order: &Order) -> Result<Haul, sqlx::Error> {
    match (&order.parts[..], order.look.retries) {
        (_, true) => {
            assert!(order.finish.is_empty(), "a claim that looks at the retries finishes nothing by the way");
            all(connection, order).await
        }
        ([part], false) if order.finish.is_empty() => new(connection, order, *part).await,
        (_, false) => shared(connection, order).await,
    }
}

/// New jobs, for one batch.
async fn new(connection: &mut PgConnection, order: &Order, part: Part) -> Result<Haul, sqlx::Error> {
    use super::row::{Stamp, Text};
    let (rank, id) = order.look.behind;
    let (limit, lease, worker) = (i64::from(order.limit), micros(order.lease), part.worker as i32);
    let rows =
        sqlx::query_file!("src/real/pg/claim_new.sql", limit, lease, rank, id, part.batch, worker).fetch_all(connection).await?;
    let taken = rows.into_iter().map(|row| Taken {
        part: 0,
        rank: row.rank,
        id: row.id,
        is_fresh: true,
        kind: row.kind,
        payload: row.payload,
        retries: 0,
        max_retries: row.max_retries,
        last_delay_ns: None,
        created: row.created,
        due: row.created,
        now: row.now,
    });
    Ok(Haul { taken: taken.collect(), ..Haul::default() })
}

/// New jobs, for several batches, and others completed by the way.
async fn shared(connection: &mut PgConnection, order: &Order) -> Result<Haul, sqlx::Error> {
    use super::row::{Stamp, Text};
    let (rank, id) = order.look.behind;
    let (limit, lease) = (i64::from(order.limit), micros(order.lease));
    let (batches, workers, starts) = columns(&order.parts);
    let rows = sqlx::query_file!("src/real/pg/turn.sql", limit, lease, rank, id, &batches, &workers, &order.finish, &starts)
        .fetch_all(connection)
        .await?;
    let finished = rows.first().map_or(0, |row| row.held as usize);
    let taken = rows.into_iter().filter_map(|row| {
        Some(Taken {
            part: place(row.part)?,
            rank: row.rank?,
            id: row.id?,
            is_fresh: true,
            kind: row.kind?,
            payload: row.payload?,
            retries: 0,
            max_retries: row.max_retries?,
            last_delay_ns: None,
            created: row.created?,
            due: row.created?,
            now: row.now,
        })
    });
    Ok(Haul { taken: taken.collect(), next_due: None, finished })
}

/// New jobs, and retries that are due.
async fn all(connection: &mut PgConnection, order: &Order) -> Result<Haul, sqlx::Error> {
    use super::row::{Stamp, Text};
    let (rank, id) = order.look.behind;
    let (limit, lease) = (i64::from(order.limit), micros(order.lease));
    let (batches, workers, starts) = columns(&order.parts);
    let rows = sqlx::query_file!("src/real/pg/claim.sql", limit, lease, rank, id, &batches, &workers, &starts)
        .fetch_all(connection)
        .await?;
    let next_due = rows.first().and_then(|row| Some(row.next_due?.since(row.now)));
    let taken = rows.into_iter().filter_map(|row| {
        Some(Taken {
            part: place(row.part)?,
            rank: row.rank?,
            id: row.id?,
            is_fresh: row.is_fresh?,
            kind: row.kind?,
            payload: row.payload?,
            retries: row.retries?,
            max_retries: row.max_retries?,
            last_delay_ns: row.last_delay_ns,
            created: row.created?,
            due: row.due?,
            now: row.now,
        })
    });
    Ok(Haul { taken: taken.collect(), next_due, finished: 0 })
}

/// What claims whose answer was lost took, as parts in the order of `batches`.
pub(super) async fn again(connection: &mut PgConnection, batches: &[i64], lease: Duration) -> Result<Vec<Taken>, sqlx::Error> {
    use super::row::{Stamp, Text};
    let rows = sqlx::query_file!("src/real/pg/recover.sql", batches, micros(lease)).fetch_all(connection).await?;
    let taken = rows.into_iter().filter_map(|row| {
        Some(Taken {
            part: batches.iter().position(|batch| *batch == row.batch)?,
            rank: row.rank,
            id: row.id,
            is_fresh: false,
            kind: row.kind,
            payload: row.payload,
            retries: row.retries,
            max_retries: row.max_retries,
            last_delay_ns: row.last_delay_ns,
            created: row.created,
            due: row.due,
            now: row.now,
        })
    });
    Ok(taken.collect())
}

fn columns(parts: &[Part]) -> (Vec<i64>, Vec<i32>, Vec<i64>) {
    (
        parts.iter().map(|part| part.batch).collect(),
        parts.iter().map(|part| part.worker as i32).collect(),
        parts.iter().map(|part| i64::from(part.start)).collect(),
    )
}

/// A part's place in its list, which the server counts from 1.
fn place(part: Option<i32>) -> Option<usize> {
    usize::try_from(part? - 1).ok()
}
