//! What may be asked of a run: a TOML file, checked as a whole before anything starts.
//!
//! Two steps, table by table, a file for each: the table as written, every key with its place, and a check that turns
//! it into the settings types of the core. *All* problems are reported, each at its own key. What comes out is valid, so
//! that nothing after this room has to ask. This room opens no file: a trace is read through a function that the caller
//! hands in. What may be written, with every default, is in `reference.toml` beside this file.

mod downstream;
mod error;
mod file;
mod jobs;
mod nearest;
mod outage;
mod policy;
#[cfg(test)]
mod reference;
mod schema;
mod table;
mod trace;
mod value;
mod workers;

use std::io;
use std::time::Duration;

pub use error::{Error, Problem};
pub use schema::schema;

use serde::Serialize;

use crate::policy::Policy;
use crate::rng::Seed;
use crate::workload::Group;

/// One experiment: the same jobs, workers and downstream under each of several policies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// A short name, also of the report's folder: letters, digits, `-` and `_`.
    pub name: String,
    /// One sentence on what it shows.
    pub about: String,
    /// What all randomness comes from.
    pub seed: Seed,
    /// A policy's run is stopped here; jobs that are not finished by then count as unfinished.
    pub horizon: Duration,
    /// How often each policy is run, each time with another seed; at least 1.
    pub repetitions: u32,
    /// Length of the sliding window in which stampede peaks are counted.
    pub stampede_window: Duration,
    /// The jobs, at least one group.
    pub jobs: Vec<Group>,
    /// The worker processes.
    pub workers: crate::worker::Settings,
    /// What is asked of the throwaway database.
    pub database: Database,
    /// The service that the jobs call.
    pub downstream: crate::downstream::Settings,
    /// The policies to compare, at least one, in the order of the file.
    pub policies: Vec<NamedPolicy>,
}

/// A policy and what the scenario calls it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedPolicy {
    /// The table's name, such as `full-jitter`.
    pub name: String,
    /// The policy.
    #[serde(flatten)]
    pub policy: Policy,
}

/// What is asked of the throwaway database; a database of the user's own keeps its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Database {
    /// Survives a crash of the operating system: fsync and full_page_writes on. Off, only a crash of the server process
    /// is survived, and the disk is not part of what is measured.
    pub durable: bool,
}

/// Reads and checks the text of a scenario file.
///
/// `read` opens the trace files that it names, by the path as written: relative to the scenario.
///
/// # Errors
/// A syntax error of TOML alone, or else everything that is wrong with the scenario, in the order of the file.
pub fn parse(text: &str, read: &dyn Fn(&str) -> io::Result<String>) -> Result<Scenario, Error> {
    let root = toml::de::DeTable::parse(text).map_err(|error| Error::Syntax(syntax(text, &error)))?;
    file::scenario(root.get_ref(), read)
}

fn syntax(text: &str, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(text.len()..text.len());
    Problem::new(&span, error.message()).help("this is not valid TOML; the rest of the file was not looked at")
}

impl Scenario {
    /// The number of jobs.
    pub fn job_count(&self) -> u64 {
        self.jobs.iter().map(|group| group.count).sum()
    }
}
