//! The statements that end claims.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::postgres::PgConnection;

use super::super::settlement::{delay_ns, failure, why};
use super::held::{Extent, batch_of};
use crate::queue::{How, Settled, Settlement, Token};

/// Settles; returns which claims were lost.
pub(super) async fn end(
    connection: &mut PgConnection,
    settlements: &[&Settlement],
    batches: &BTreeMap<i64, u32>,
    extent: Extent,
) -> Result<BTreeSet<Token>, sqlx::Error> {
    let batches: Vec<i64> = batches.keys().copied().collect();
    let all_held = match extent {
        Extent::Completed => {
            let held = sqlx::query_file_scalar!("src/real/pg/finish.sql", &batches).fetch_all(&mut *connection).await?;
            held.len() == batches.len()
        }
        Extent::Ended | Extent::Part => settle(connection, &batches, settlements).await? == settlements.len() as i64,
    };
    if all_held { Ok(BTreeSet::new()) } else { lost(connection, settlements).await }
}

/// Settles jobs one by one; returns how many were held.
async fn settle(connection: &mut PgConnection, batches: &[i64], settlements: &[&Settlement]) -> Result<i64, sqlx::Error> {
    let of = |kind: fn(&How) -> bool| settlements.iter().filter(move |settlement| kind(&settlement.how)).copied();
    let columns = |kind| (of(kind).map(batch).collect::<Vec<i64>>(), of(kind).map(job).collect::<Vec<i64>>());
    let failures = |kind| of(kind).map(|s| failure(&s.how).map(str::to_owned)).collect::<Vec<Option<String>>>();
    let completed = columns(is_completed);
    let returned = columns(is_returned);
    let discarded = columns(is_discarded);
    let delays: Vec<Option<i64>> = of(is_returned).map(|s| (s.how != How::Release).then(|| delay_ns(&s.how))).collect();
    let whys: Vec<Option<String>> = of(is_discarded).map(|s| why(&s.how).map(str::to_owned)).collect();
    sqlx::query_file_scalar!(
        "src/real/pg/settle.sql",
        batches,
        &completed.0,
        &completed.1,
        &returned.0,
        &returned.1,
        &delays as &[Option<i64>],
        &failures(is_returned) as &[Option<String>],
        &discarded.0,
        &discarded.1,
        &whys as &[Option<String>],
        &failures(is_discarded) as &[Option<String>]
    )
    .fetch_one(connection)
    .await
}

fn batch(settlement: &Settlement) -> i64 {
    batch_of(settlement.token)
}

fn job(settlement: &Settlement) -> i64 {
    settlement.job.0 as i64
}

fn is_completed(how: &How) -> bool {
    matches!(how, How::Complete)
}

fn is_returned(how: &How) -> bool {
    matches!(how, How::Retry { .. } | How::Release)
}

fn is_discarded(how: &How) -> bool {
    matches!(how, How::Discard { .. })
}

/// Those of these claims, some of which were not held, that had been lost.
pub(super) async fn lost(connection: &mut PgConnection, settlements: &[&Settlement]) -> Result<BTreeSet<Token>, sqlx::Error> {
    let batches: Vec<i64> = settlements.iter().map(|s| batch(s)).collect();
    let jobs: Vec<i64> = settlements.iter().map(|s| job(s)).collect();
    let rows = sqlx::query_file!("src/real/pg/lost.sql", &batches, &jobs).fetch_all(connection).await?;
    let lost: BTreeSet<(i64, i64)> = rows.into_iter().map(|row| (row.batch, row.job)).collect();
    Ok(settlements.iter().filter(|s| lost.contains(&(batch(s), job(s)))).map(|s| s.token).collect())
}

/// The answer to a settlement, of whose claims those were lost.
pub(super) fn parted(settlements: &[Settlement], lost: &BTreeSet<Token>) -> Settled {
    if lost.is_empty() {
        return Settled { settled: settlements.iter().map(|settlement| settlement.token).collect(), lost: Vec::new() };
    }
    let (lost, settled) = settlements.iter().map(|settlement| settlement.token).partition(|token| lost.contains(token));
    Settled { settled, lost }
}
