//! How fast this machine's parts are: the engine, the database, HTTP and timers, measured as a run uses them.
//!
//! ```text
//!  alone      one statement, one call, one timer at a time: how long each takes when nothing else is going on
//!  saturated  the engine at full load: processors × time = statements × work + jobs × work per job, over several batch sizes
//! ```
//! The second gives the processor time of everything that has a part in a statement (workers, driver, server), since a machine at
//! full load does nothing else; the first divides it between claims and settlements, and what is left of a lone statement's time is its
//! wait. It supposes that the database is on this machine, as in a run with a throwaway server it is.

mod alone;
mod fit;
mod saturated;

use sqlx::postgres::PgConnectOptions;

use super::pg::{Batch, Schema, insert};
use super::{Clock, Error};
use crate::profile::{Cost, Profile};
use crate::queue::ClaimMode;
use crate::time::Instant;
use crate::workload::{Arrival, Group, Job};
use alone::Alone;
use saturated::Saturated;

/// How to calibrate.
#[derive(Debug)]
pub struct Bench<'a> {
    /// A database on this machine.
    pub database: &'a PgConnectOptions,
    /// What the schemas' names begin with.
    pub name: String,
    /// A tenth of the work: for trying it out.
    pub quick: bool,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The profile.
    pub profile: Profile,
    /// What was measured and what the profile makes of it.
    pub checks: Vec<Check>,
}

/// A measured figure beside what the profile's arithmetic gives for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What.
    pub what: String,
    /// As measured.
    pub measured: f64,
    /// As the profile has it.
    pub predicted: f64,
    /// Of what.
    pub unit: &'static str,
}

/// Measures this machine. Takes about half a minute.
///
/// # Errors
/// If the database can't be used, or the downstream service can't be started.
pub async fn calibrate(bench: &Bench<'_>) -> Result<Calibration, Error> {
    let clock = Clock::starting_in(std::time::Duration::ZERO);
    let alone = Alone::measure(bench, clock).await?;
    let saturated = Saturated::measure(bench).await?;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    Ok(fit::fit(processors, &alone, &saturated))
}

/// So many new jobs in a schema of their own.
async fn filled(bench: &Bench<'_>, part: &str, jobs: u64) -> Result<Schema, Error> {
    let schema = Schema::create(bench.database, &format!("{}_{part}", bench.name), "simq calibrate").await?;
    let mut connection = super::pg::connect(schema.options()).await?;
    let (group, all) = (group(jobs), numbered(1, jobs));
    for (number, jobs) in (1..).zip(all.chunks(1000)) {
        let batch = Batch { producer: -1, number, jobs, groups: std::slice::from_ref(&group), max_retries: None };
        insert(&mut connection, batch, ClaimMode::Lease).await?;
    }
    sqlx::query("ANALYZE").execute(&mut connection).await?;
    sqlx::Connection::close(connection).await?;
    Ok(schema)
}

fn group(count: u64) -> Group {
    let at = std::time::Duration::ZERO;
    Group { kind: "email".into(), count, arrival: Arrival::AtOnce, at, priority: 0, permanent: 0.0, max_retries: 1000 }
}

fn numbered(first: u64, count: u64) -> Vec<Job> {
    (first..first + count).map(|id| Job { at: Instant::START, id: crate::job::JobId(id), group: 0, malformed: false }).collect()
}

/// A cost of this much processor time, with what a lone one takes beside it.
fn cost(work: [f64; 3], alone: alone::Spread) -> Cost {
    let [work_us, work_per_job_us, work_per_retry_us] = work.map(round);
    let wait_us = round((alone.median - work_us - work_per_job_us).max(0.0));
    let wait_p99_us = round((alone.p99 - work_us - work_per_job_us).max(wait_us));
    Cost { work_us, work_per_job_us, work_per_retry_us, wait_us, wait_p99_us }
}

/// Tenths of a microsecond: more is noise.
fn round(us: f64) -> f64 {
    (us * 10.0).round() / 10.0
}
