//! The file as a whole: the keys at its top, and its tables.

use std::io;
use std::time::Duration;

use toml::de::DeTable;

use super::amount::Scale;
use super::assert::{self, Assert};
use super::chaos::{self, RawChaos};
use super::downstream::{self, Downstream};
use super::error::{Error, Problem};
use super::jobs::{self, Jobs};
use super::policy::{self, Policy};
use super::table::{At, Named, Section, table};
use super::value::{Count, Flag, Length, Name, Text};
use super::workers::{self, Workers};
use super::{Database, Scenario};
use crate::rng::Seed;
use crate::time::show;

table! {
    /// A scenario: the same jobs, workers and downstream under each of several policies.
    #[schemars(title = "simq scenario")]
    File in "the top of the file" {
        /// A short name, also of the report's folder: letters, digits, `-` and `_`.
        name: Name,
        /// One sentence on what it shows.
        about: Text = "",
        /// What all randomness comes from.
        seed: Count<0, { i64::MAX as u64 }> = 1,
        /// A policy's run is stopped here; jobs that are not finished by then count as unfinished.
        horizon: Length,
        /// How often each policy is run, each time with another seed.
        repetitions: Count<1, 1000> = 1,
        /// Makes every policy's time run slower, or faster below 1: with 0.001, hours become seconds.
        time_scale: Scale = 1.0,
        /// Length of the sliding window in which stampede peaks are counted.
        stampede_window: Length = "100ms",
        /// The jobs, in groups.
        jobs: Vec<Section<Jobs>>,
        /// The worker processes.
        #[schemars(default)]
        workers: Section<Workers>,
        /// What is asked of the throwaway database.
        #[schemars(default)]
        database: Section<RawDatabase>,
        /// The service that the jobs call.
        downstream: Section<Downstream>,
        /// What befalls workers, connections or the database.
        #[schemars(default)]
        chaos: Vec<Section<RawChaos>>,
        /// The policies to compare, as tables with names of your own.
        policy: Named<Policy>,
        /// What must hold after a run, or `simq run` and `simq gate` exit with 3.
        #[schemars(default)]
        assert: Vec<Section<Assert>>,
    }
}

table! {
    /// What is asked of the throwaway database; a database of your own keeps its settings.
    #[schemars(rename = "Database")]
    RawDatabase in "[database]" {
        /// Survive a crash of the operating system: fsync on. Off, the disk is not part of what is measured.
        durable: Flag = false,
    }
}

/// What the checks of all tables share.
pub(super) struct Check<'a> {
    /// Where a run is stopped, if that is known.
    pub(super) horizon: Option<&'a At<Length>>,
    /// Reads a trace file.
    pub(super) read: &'a dyn Fn(&str) -> io::Result<String>,
    /// What has been found.
    pub(super) problems: &'a mut Vec<Problem>,
}

impl Check<'_> {
    /// Reports a problem.
    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Whether something that ends so long after the start would outlast the run.
    pub(super) fn is_over(&self, after: Duration) -> bool {
        self.horizon.is_some_and(|horizon| after > horizon.value.0)
    }

    /// Whether a run is over as soon as so much time has passed.
    pub(super) fn is_over_by(&self, after: Duration) -> bool {
        self.horizon.is_some_and(|horizon| after >= horizon.value.0)
    }

    /// Adds where the run stops.
    pub(super) fn stops(&self, problem: Problem) -> Problem {
        match self.horizon {
            Some(horizon) => problem.label(&horizon.place, "but the run stops here"),
            None => problem,
        }
    }
}

/// Reads and checks a whole file.
pub(super) fn scenario(root: &DeTable<'_>, text: &str, read: &dyn Fn(&str) -> io::Result<String>) -> Result<Scenario, Error> {
    let top = root.keys().map(toml::Spanned::span).min_by_key(|span| span.start).unwrap_or(0..0);
    if root.is_empty() {
        let help = "see the shipped scenarios, or the reference of all keys, for what to write";
        return Err(Error::Invalid { problems: vec![Problem::new(&top, "the file says nothing").help(help)] });
    }
    let mut problems = Vec::new();
    let file: Section<File> = Section::new("the top of the file".to_owned(), top, root, &mut problems);
    let horizon = file.raw.horizon.need("horizon", &file.header, &mut problems);
    let scenario = check(&file, text, &mut Check { horizon, read, problems: &mut problems });
    if problems.is_empty() {
        return Ok(scenario);
    }
    problems.sort_by_key(|problem| problem.span.start);
    Err(Error::Invalid { problems })
}

/// The scenario; one that nobody may look at where problems were reported.
fn check(file: &Section<File>, text: &str, check: &mut Check<'_>) -> Scenario {
    let (raw, header) = (&file.raw, &file.header);
    check_window(raw, check);
    let scale = raw.time_scale.or(Scale(1.0)).0;
    let timeout = downstream::client_timeout(raw.downstream.value());
    let workers = workers::check(raw.workers.value(), timeout, check);
    Scenario {
        name: raw.name.need("name", header, check.problems).map(|at| at.value.0.clone()).unwrap_or_default(),
        about: raw.about.value().map(|about| about.0.clone()).unwrap_or_default(),
        seed: Seed(raw.seed.or(Count(1)).0),
        horizon: check.horizon.map(|at| at.value.0).unwrap_or_default(),
        repetitions: raw.repetitions.or(Count(1)).0 as u32,
        stampede_window: raw.stampede_window.or(Length(Duration::from_millis(100))).0,
        jobs: raw.jobs.need("jobs", header, check.problems).map(|at| jobs::check(at, check)).unwrap_or_default(),
        workers,
        database: Database { durable: raw.database.value().is_some_and(|section| section.raw.durable.or(Flag(false)).0) },
        downstream: downstream::check(raw.downstream.need("downstream", header, check.problems), &types(raw), check),
        chaos: raw.chaos.value().map(|raw| chaos::check(raw, workers.count, check)).unwrap_or_default(),
        policies: raw.policy.need("policy", header, check.problems).map(|at| policy::check(at, scale, check)).unwrap_or_default(),
        assertions: assert::check(raw.assert.value(), &policies(raw), text, check),
    }
}

/// The job types that were given right; none if one was not, so that nothing is concluded from them.
fn types(raw: &File) -> Vec<String> {
    let sections = raw.jobs.value().map(Vec::as_slice).unwrap_or_default();
    let types = sections.iter().map(|section| section.raw.r#type.value().map(|name| name.0.clone()));
    types.collect::<Option<Vec<String>>>().unwrap_or_default()
}

/// The policies' names; none if one was not right, so that nothing is concluded from them.
fn policies(raw: &File) -> Vec<String> {
    raw.policy.value().map(|named| named.0.iter().map(|(name, _)| name.value.clone()).collect()).unwrap_or_default()
}

fn check_window(raw: &File, check: &mut Check<'_>) {
    if let Some(window) = raw.stampede_window.given().filter(|window| check.is_over(window.value.0)) {
        let message = format!("`stampede_window` ({}) is longer than the whole run", show(window.value.0));
        let problem = Problem::new(&window.place, message).label(&window.place, "this long");
        let problem = check.stops(problem).help("choose a window much shorter than the run, such as \"100ms\"");
        check.report(problem);
    }
}
