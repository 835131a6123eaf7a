//! Puts jobs into the queue when they arrive: an open loop that waits for nobody.

use std::time::Duration;

use hdrhistogram::Histogram;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::clock::Clock;
use super::pg::{Batch, Schema, announce, enlist, insert};
use crate::metrics::{histogram, record};
use crate::queue::ClaimMode;
use crate::time::Instant;
use crate::workload::{Group, Job};

/// Most jobs in one INSERT.
const BATCH: usize = 1000;

/// What is put in, and where.
#[derive(Debug)]
pub struct Load {
    /// The jobs, in order of arrival.
    pub jobs: Vec<Job>,
    /// Their groups.
    pub groups: Vec<Group>,
    /// Retries allowed, in place of each group's number.
    pub max_retries: Option<u32>,
    /// Tell listening workers.
    pub notify: bool,
    /// How the workers claim.
    pub mode: ClaimMode,
}

/// How often in a row an insert may fail before the run is given up, and the pause in between: a restart of the server fits in.
const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_millis(250);

impl Load {
    /// Inserts each job at its time, on a connection of its own; a broken one is opened again. Returns by how much inserts were
    /// late, in microseconds.
    ///
    /// # Errors
    /// If the database could not be reached again.
    pub async fn run(self, schema: Schema, clock: Clock) -> Result<Histogram<u64>, sqlx::Error> {
        let mut lateness = histogram();
        let (mut connection, mut producer) = (None, None);
        let mut rest = &self.jobs[..];
        let mut failures = 0;
        let mut number = 1;
        // A batch that may have been put in is sent again as it was.
        let mut sending = 0;
        while let Some(first) = rest.first() {
            clock.sleep_until(first.at).await;
            if sending == 0 {
                sending = due(rest, clock.now()).len();
            }
            let due = &rest[..sending];
            match self.insert(&mut connection, &mut producer, &schema, number, due).await {
                Ok(()) => failures = 0,
                Err(error) if failures == TRIES => return Err(error),
                Err(_) => {
                    failures += 1;
                    connection = None;
                    clock.sleep_until(clock.now() + PAUSE).await;
                    continue;
                }
            }
            let done = clock.now();
            for job in due {
                record(&mut lateness, done.since(job.at));
            }
            rest = &rest[due.len()..];
            (number, sending) = (number + 1, 0);
        }
        Ok(lateness)
    }

    async fn insert(
        &self,
        connection: &mut Option<PgConnection>,
        producer: &mut Option<i64>,
        schema: &Schema,
        number: u64,
        jobs: &[Job],
    ) -> Result<(), sqlx::Error> {
        let open = match connection {
            Some(open) => open,
            None => connection.insert(PgConnection::connect_with(schema.options()).await?),
        };
        let producer = match producer {
            Some(producer) => *producer,
            None => *producer.insert(enlist(open).await?),
        };
        let batch = Batch { producer, number, jobs, groups: &self.groups, max_retries: self.max_retries };
        insert(open, batch, self.mode).await?;
        if self.notify {
            announce(open, schema.name()).await?;
        }
        Ok(())
    }
}

/// The jobs at the head of `rest` that have arrived by `now`; at least one, at most a batch.
fn due(rest: &[Job], now: Instant) -> &[Job] {
    let arrived = rest.iter().take(BATCH).take_while(|job| job.at <= now).count();
    &rest[..arrived.max(1)]
}
