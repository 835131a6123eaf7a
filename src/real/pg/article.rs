//! The article's queue: one table, and a transaction that stays open while the job runs.
//!
//! The row is locked, and the connection is taken, for as long as the job runs: a worker that dies frees the job, and no connection
//! means no work. The article rolls the failed attempt back before it writes the retry; between the two another worker may
//! take the job with its old count. Here the retry is written in the claiming transaction, so that nothing is lost.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::connections::Lent;
use super::settlement::{delay_ns, failure, why, word};
use super::store::from_micros;
use crate::job::{JobId, Memory};
use crate::queue::{Claim, Claimed, Settled, Settlement, Token};

/// The open transactions, by the claim that each holds.
#[derive(Debug, Default)]
pub(super) struct Article {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    claims: i64,
    /// Each with a transaction that has claimed a job.
    transactions: BTreeMap<Token, Lent>,
}

impl Article {
    pub(super) async fn claim(&self, mut connection: Lent) -> Result<Claimed, sqlx::Error> {
        sqlx::query("BEGIN").execute(&mut *connection).await?;
        let Some(row) = sqlx::query_file!("src/real/pg/article/claim.sql").fetch_optional(&mut *connection).await? else {
            sqlx::query("ROLLBACK").execute(&mut *connection).await?;
            connection.give_back();
            return Ok(Claimed::default());
        };
        sqlx::query_file!("src/real/pg/article/begin.sql", row.id).execute(&mut *connection).await?;
        let claim = Claim {
            job: JobId(row.id as u64),
            token: self.keep(connection),
            kind: row.kind.into(),
            payload: row.payload.into(),
            memory: Memory {
                retries: row.retries as u32,
                max_retries: row.max_retries as u32,
                last_delay: row.last_delay_ns.map(|ns| Duration::from_nanos(ns.max(0) as u64)),
                age: from_micros(row.age_us),
            },
            lag: from_micros(row.lag_us),
        };
        Ok(Claimed { claims: vec![claim], next_due: None })
    }

    /// Settles each job in the transaction that claimed it. One whose transaction broke was rolled back by the database: lost.
    pub(super) async fn settle(&self, settlements: &[Settlement]) -> Settled {
        let mut all = Settled::default();
        for settlement in settlements {
            let settled = match self.take(settlement.token) {
                Some(transaction) => settle(transaction, settlement).await.is_ok(),
                None => false,
            };
            let list = if settled { &mut all.settled } else { &mut all.lost };
            list.push(settlement.token);
        }
        all
    }

    /// Closes the connections that hold a transaction; the server rolls it back.
    pub(super) fn abandon(&self) {
        drop(std::mem::take(&mut *self.open.lock().expect("nobody panics while holding it")));
    }

    /// The same for these claims only.
    pub(super) fn drop_some(&self, tokens: &[Token]) {
        tokens.iter().for_each(|token| drop(self.take(*token)));
    }

    fn keep(&self, transaction: Lent) -> Token {
        let mut open = self.open.lock().expect("nobody panics while holding it");
        open.claims += 1;
        let token = Token(open.claims);
        open.transactions.insert(token, transaction);
        token
    }

    fn take(&self, token: Token) -> Option<Lent> {
        self.open.lock().expect("nobody panics while holding it").transactions.remove(&token)
    }
}

async fn settle(mut connection: Lent, settlement: &Settlement) -> Result<(), sqlx::Error> {
    let how = &settlement.how;
    sqlx::query_file!(
        "src/real/pg/article/settle.sql",
        settlement.job.0 as i64,
        word(how),
        delay_ns(how),
        why(how),
        failure(how)
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query("COMMIT").execute(&mut *connection).await?;
    connection.give_back();
    Ok(())
}
