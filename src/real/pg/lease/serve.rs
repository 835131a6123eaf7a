//! One turn at the desk: what has come together becomes one statement, or two.
//!
//! Batches that are completed as a whole and claims of new jobs go together. Other settlements are a statement of their own, before the
//! claims, so that these see what it leaves behind; and so is a claim that looks at the retries.

use std::collections::BTreeSet;

use sqlx::postgres::PgConnection;

use super::Lease;
use super::desk::{Ask, Load, Settle};
use super::end;
use super::held::{Extent, by_batch};
use super::mark::Look;
use crate::queue::Settlement;

impl Lease {
    /// Serves what has come together at the desk.
    pub(super) async fn serve(&self, load: Load) {
        let mut connection = match self.connections.take().await {
            Ok(connection) => connection,
            Err(error) => return load.fail(&error),
        };
        let Load { settles, claims } = load;
        let by_the_way = !claims.is_empty() && !self.look().retries && self.completes(&settles);
        let (first, second) = if by_the_way { (vec![], settles) } else { (settles, vec![]) };
        let mut went_well = first.is_empty() || self.serve_settles(&mut connection, first).await;
        if !claims.is_empty() {
            if went_well {
                went_well = self.serve_claims(&mut connection, claims, second).await;
            } else {
                Load { settles: second, claims }.fail(&sqlx::Error::WorkerCrashed);
            }
        }
        if went_well {
            connection.give_back();
        }
    }

    /// Whether these complete every job of each batch that they are about.
    fn completes(&self, settles: &[Settle]) -> bool {
        let settlements: Vec<&Settlement> = settles.iter().flat_map(|settle| &settle.settlements).collect();
        self.held().extent(&by_batch(&settlements), &settlements) == Extent::Completed
    }

    /// Settles for all who wait; says whether it went well.
    async fn serve_settles(&self, connection: &mut PgConnection, settles: Vec<Settle>) -> bool {
        let settlements: Vec<&Settlement> = settles.iter().flat_map(|settle| &settle.settlements).collect();
        match self.end(connection, &settlements).await {
            Ok(lost) => {
                settles.into_iter().for_each(|settle| settle.succeed(&lost));
                true
            }
            Err(error) => {
                Load { settles, claims: vec![] }.fail(&error);
                false
            }
        }
    }

    /// Claims for all who wait, and completes these batches by the way; says whether it went well.
    async fn serve_claims(&self, connection: &mut PgConnection, claims: Vec<Ask>, settles: Vec<Settle>) -> bool {
        let asks: Vec<(u32, u32)> = claims.iter().map(|ask| (ask.worker, ask.limit)).collect();
        let lease = claims[0].lease;
        let settlements: Vec<&Settlement> = settles.iter().flat_map(|settle| &settle.settlements).collect();
        let batches = by_batch(&settlements);
        let look = if settles.is_empty() { self.look() } else { Look { retries: false, ..self.look() } };
        let taken = self.take(connection, &asks, lease, look, batches.keys().copied().collect()).await;
        let (mut claimed, finished) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                Load { settles, claims }.fail(&error);
                return false;
            }
        };
        let mut went_well = true;
        if !settles.is_empty() {
            let lost = match finished == batches.len() {
                true => Ok(BTreeSet::new()),
                false => end::lost(connection, &settlements).await,
            };
            match lost {
                Ok(lost) => {
                    self.ended(&settlements, &batches, Extent::Completed);
                    settles.into_iter().for_each(|settle| settle.succeed(&lost));
                }
                Err(error) => {
                    went_well = false;
                    Load { settles, claims: vec![] }.fail(&error);
                }
            }
        }
        if went_well && look != Look::ALL && claimed.iter().all(|claimed| claimed.claims.is_empty()) {
            match self.take(connection, &asks, lease, Look::ALL, vec![]).await {
                Ok((all, _)) => claimed = all,
                Err(error) => {
                    Load { settles: vec![], claims }.fail(&error);
                    return false;
                }
            }
        }
        claims.into_iter().zip(claimed).for_each(|(ask, claimed)| ask.succeed(claimed));
        went_well
    }
}
