//! What may be asked of a run: a TOML file, checked as a whole before anything starts.
//!
//! Two steps, table by table, a file for each: the table as written, every key with its place, and a check that turns
//! it into the settings types of the core. *All* problems are reported, each at its own key. What comes out is valid, so
//! that nothing after this room has to ask. This room opens no file: a trace is read through a function that the caller
//! hands in. What may be written, with every default, is in `reference.toml` beside this file.

mod amount;
mod assert;
pub mod chaos;
mod collapse;
mod downstream;
mod error;
mod file;
mod fingerprint;
mod humane;
mod jobs;
mod outage;
mod policy;
#[cfg(test)]
mod reference;
mod schema;
mod table;
mod trace;
mod value;
mod words;
mod workers;

use std::io;
use std::time::Duration;

pub use assert::{Assertion, Bound, Over, Relation};
pub use error::{Error, Problem};
pub use fingerprint::{digest, fingerprint};
pub use humane::humanise;
pub use outage::fault;
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
    /// What befalls workers, connections and the database, in the order of the file.
    pub chaos: Vec<chaos::Chaos>,
    /// The policies to compare, at least one, in the order of the file.
    pub policies: Vec<NamedPolicy>,
    /// What must hold afterwards, in the order of the file.
    pub assertions: Vec<Assertion>,
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
    file::scenario(root.get_ref(), text, read)
}

fn syntax(text: &str, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(text.len()..text.len());
    if error.message() == "duplicate key" {
        let message = format!("`{}` is written a second time", text.get(span.clone()).unwrap_or_default());
        return Problem::new(&span, message).help("keep one of the two");
    }
    Problem::new(&span, error.message()).help("this is not valid TOML; the rest of the file was not looked at")
}

impl Scenario {
    /// Every turn of every outage up to the horizon, in order of time, each as an outage of its own.
    pub fn spells(&self) -> Vec<crate::downstream::Outage> {
        self.downstream.spells(self.horizon)
    }

    /// Every blow of the scenario's chaos up to the horizon, in order of time, with whom it hits under this seed.
    pub fn strikes(&self, seed: Seed) -> Vec<chaos::Strike> {
        chaos::plan(&self.chaos, self.workers.count, self.horizon, seed)
    }

    /// The number of jobs.
    pub fn job_count(&self) -> u64 {
        self.jobs.iter().map(|group| group.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::{Mode, RateLimit};
    use crate::policy::{Backoff, Jitter, RetryAfter};
    use crate::queue::ClaimMode;
    use crate::worker::Wait;
    use crate::workload::Arrival;

    /// A small scenario with `more` at its end.
    fn with(more: &str) -> Result<Scenario, Error> {
        let text = format!(
            "name = 'x'\nhorizon = '60s'\n[[jobs]]\ntype = 'email'\ncount = 5\n[policy.first]\nkind = 'none'\n\
             [downstream]\nservers = 1\nlatency = {{ kind = 'constant', value = '1ms' }}\n{more}"
        );
        parse(&text, &|_| Ok("at\n1s\n2s\n".to_owned()))
    }

    fn ok(more: &str) -> Scenario {
        with(more).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn policies_keep_the_order_of_the_file() {
        let more = "[policy.zebra]\nkind = 'none'\n[policy.ant]\nkind = 'constant'\ndelay = '1s'\n";
        let names: Vec<String> = ok(more).policies.into_iter().map(|policy| policy.name).collect();
        assert_eq!(names, ["first", "zebra", "ant"]);
    }

    #[test]
    fn a_policy_becomes_what_its_keys_say() {
        let more = "[policy.a]\nkind = 'exponential'\nbase = '1s'\nfactor = 3\ncap = '9s'\njitter = 'proportional'\n\
                    jitter_share = 0.25\nmax_retries = 7\nclassify = false\nretry_after = 'at-least'\n\
                    [policy.b]\nkind = 'linear'\nbase = '0s'\nstep = '2s'\njitter = 'decorrelated'\n";
        assert!(with(more).is_err(), "decorrelated jitter can't grow from zero");
        let scenario = ok(&more.replace("base = '0s'", "base = '1s'"));
        let policy = &scenario.policies[1].policy;
        assert_eq!(policy.backoff, Backoff::Exponential { base: Duration::from_secs(1), factor: 3.0 });
        assert_eq!((policy.cap, &policy.jitter), (Some(Duration::from_secs(9)), &Jitter::Proportional { share: 0.25 }));
        assert_eq!((policy.max_retries, policy.classify, policy.retry_after), (Some(7), false, RetryAfter::AtLeast));
        assert_eq!(scenario.policies[2].policy.jitter, Jitter::Decorrelated { bound: false, rising: false });
    }

    #[test]
    fn a_claim_takes_as_many_jobs_as_there_are_slots_and_a_transaction_one() {
        assert_eq!(ok("").workers.batch, 16);
        assert_eq!(ok("[workers]\nslots = 5000\n").workers.batch, 1000);
        let transaction = ok("[workers]\nclaim = 'transaction'\nwait = 'poll'\npoll = '1s'\nlease = '1s'\n").workers;
        assert_eq!((transaction.claim, transaction.batch), (ClaimMode::Transaction, 1));
        assert_eq!(transaction.wait, Wait::Poll { every: Duration::from_secs(1) });
    }

    #[test]
    fn a_trace_brings_its_own_number_of_jobs() {
        let scenario = ok("[[jobs]]\ntype = 'report'\narrival = 'trace'\ntrace = 't.csv'\n");
        assert_eq!(scenario.job_count(), 7);
        assert!(matches!(&scenario.jobs[1].arrival, Arrival::Trace { times } if times.len() == 2));
    }

    #[test]
    fn outages_are_in_order_of_time_and_impairments_may_overlap() {
        let outage = |at: &str, rest: &str| format!("[[downstream.outage]]\nat = '{at}'\nlasts = '10s'\n{rest}\n");
        let limit = outage("25s", "mode = 'rate-limit'\nrate = '600/min'");
        let more = [limit, outage("20s", "mode = 'brownout'"), outage("10s", "mode = 'hang'")].concat();
        let outages = ok(&more).downstream.outages;
        let names: Vec<&str> = outages.iter().map(|outage| outage.mode.name()).collect();
        assert_eq!(names, ["hang", "brownout", "rate-limit"]);
        assert_eq!(outages[1].mode, Mode::Brownout { error_rate: 0.5, slowdown: 2.0, servers: None });
        assert_eq!(outages[2].mode, Mode::RateLimit(RateLimit::bucket(10.0, 1, Duration::from_secs(1))));
    }

    #[test]
    fn both_sides_of_a_contradiction_are_labelled() {
        let more = "client_timeout = '40s'\n[workers]\nlease = '30s'\n";
        let Err(Error::Invalid { problems }) = with(more) else { panic!("a lease shorter than a call") };
        assert_eq!((problems.len(), problems[0].labels.len()), (1, 2));
    }
}
