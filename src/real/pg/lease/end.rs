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
        Extent::Whole => {
            let (back, out) = (Returned::of(settlements), Discarded::of(settlements));
            let held = sqlx::query_file_scalar!(
                "src/real/pg/settle_whole.sql",
                &batches,
                &back.batches,
                &back.jobs,
                &back.delays as &[Option<i64>],
                &back.failures as &[Option<String>],
                &out.batches,
                &out.jobs,
                &out.whys as &[Option<String>],
                &out.failures as &[Option<String>]
            );
            held.fetch_all(&mut *connection).await?.len() == batches.len()
        }
        Extent::Rest | Extent::Part => {
            let (back, out) = (Returned::of(settlements), Discarded::of(settlements));
            let completed = || settlements.iter().filter(|settlement| settlement.how == How::Complete);
            let settled = sqlx::query_file_scalar!(
                "src/real/pg/settle.sql",
                &batches,
                &completed().map(|s| batch(s)).collect::<Vec<i64>>(),
                &completed().map(|s| job(s)).collect::<Vec<i64>>(),
                &back.batches,
                &back.jobs,
                &back.delays as &[Option<i64>],
                &back.failures as &[Option<String>],
                &out.batches,
                &out.jobs,
                &out.whys as &[Option<String>],
                &out.failures as &[Option<String>]
            );
            settled.fetch_one(&mut *connection).await? == settlements.len() as i64
        }
    };
    if all_held { Ok(BTreeSet::new()) } else { lost(connection, settlements).await }
}

/// Those that go back to the queue, as columns.
#[derive(Default)]
struct Returned {
    batches: Vec<i64>,
    jobs: Vec<i64>,
    /// `None` if it was never started.
    delays: Vec<Option<i64>>,
    failures: Vec<Option<String>>,
}

impl Returned {
    fn of(settlements: &[&Settlement]) -> Returned {
        let mut all = Returned::default();
        for settlement in settlements.iter().filter(|s| matches!(s.how, How::Retry { .. } | How::Release)) {
            all.batches.push(batch(settlement));
            all.jobs.push(job(settlement));
            all.delays.push((settlement.how != How::Release).then(|| delay_ns(&settlement.how)));
            all.failures.push(failure(&settlement.how).map(str::to_owned));
        }
        all
    }
}

/// Those that are given up, as columns.
#[derive(Default)]
struct Discarded {
    batches: Vec<i64>,
    jobs: Vec<i64>,
    whys: Vec<Option<String>>,
    failures: Vec<Option<String>>,
}

impl Discarded {
    fn of(settlements: &[&Settlement]) -> Discarded {
        let mut all = Discarded::default();
        for settlement in settlements.iter().filter(|s| matches!(s.how, How::Discard { .. })) {
            all.batches.push(batch(settlement));
            all.jobs.push(job(settlement));
            all.whys.push(why(&settlement.how).map(str::to_owned));
            all.failures.push(failure(&settlement.how).map(str::to_owned));
        }
        all
    }
}

fn batch(settlement: &Settlement) -> i64 {
    batch_of(settlement.token)
}

fn job(settlement: &Settlement) -> i64 {
    settlement.job.0 as i64
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
