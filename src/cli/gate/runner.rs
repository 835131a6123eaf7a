//! Runs to be judged: in virtual time or in real time, and the engine's probe beside them.
//!
//! Whatever the time, what comes out is the same: every figure of every repetition. This is the only place that knows how it is come by.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use anyhow::{Context, anyhow};

use crate::check::{Rule, Runs, Time};
use crate::cli::Exit;
use crate::cli::args;
use crate::cli::database::Lent;
use crate::cli::exit::Code;
use crate::cli::run::{self, AUDIT};
use crate::cli::say::say;
use crate::metrics::{End, EngineMetric, Limit};
use crate::profile::Profile;
use crate::real::pg::Schema;
use crate::real::probe;
use crate::scenario::Scenario;
use crate::sim::{self, replicate};

/// Rounds of the engine's probe.
const ROUNDS: usize = 20;

/// What to run.
pub(in crate::cli) struct Order<'a> {
    pub(in crate::cli) scenario: &'a Scenario,
    /// What the scenario's file says.
    pub(in crate::cli) fingerprint: &'a str,
    pub(in crate::cli) time: Time,
    pub(in crate::cli) repetitions: u32,
    pub(in crate::cli) database_url: Option<&'a str>,
    pub(in crate::cli) quiet: bool,
}

/// What was run, and what must be known of it.
pub(in crate::cli) struct Played {
    pub(in crate::cli) runs: Runs,
    pub(in crate::cli) notes: Vec<String>,
}

/// Runs every policy as often as ordered, and the engine's probe if an assertion asks for it.
///
/// # Errors
/// If it can't be run, was interrupted, or failed its audit: then there is nothing to judge.
pub(in crate::cli) fn play(order: &Order<'_>) -> anyhow::Result<Played> {
    let mut scenario = order.scenario.clone();
    scenario.repetitions = order.repetitions;
    let mut played = match order.time {
        Time::Virtual => in_virtual_time(&scenario, order)?,
        Time::Real => in_real_time(&scenario, order)?,
    };
    if scenario.assertions.iter().any(|assertion| EngineMetric::named(&assertion.metric).is_some()) {
        played.runs.engine = measure_engine(&scenario, order)?;
    }
    Ok(played)
}

fn empty(order: &Order<'_>, machine: BTreeMap<String, String>) -> Runs {
    Runs {
        scenario: order.scenario.name.clone(),
        fingerprint: order.fingerprint.to_owned(),
        time: order.time,
        simq: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        policies: Vec::new(),
        engine: BTreeMap::new(),
        unfit: Vec::new(),
    }
}

/// Each policy under each seed, on all processors; the parts of the machine that take time take what simq's own profile says.
fn in_virtual_time(scenario: &Scenario, order: &Order<'_>) -> anyhow::Result<Played> {
    let stop = crate::cli::stop::listen(order.quiet)?;
    let profile = Profile::built_in();
    let policies = scenario.policies.len();
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let outcomes = replicate(scenario.repetitions as usize * policies, threads, stop, |number| {
        let seed = scenario.seed.repetition((number / policies) as u32 + 1);
        let policy = &scenario.policies[number % policies].policy;
        let outcome = sim::run(sim::Plan { scenario, policy, seed, profile: &profile, tape: false }, stop)?;
        // Only the figures: the records of many repetitions would fill the memory.
        Ok::<_, sim::Error>((outcome.end, outcome.breaches, outcome.summary))
    });
    let mut runs = empty(order, BTreeMap::from([("os".to_owned(), os())]));
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let named = &scenario.policies[number % policies];
        let (end, breaches, summary) = match outcome {
            None => return Err(interrupted()),
            Some(outcome) => outcome.with_context(|| format!("policy `{}`", named.name)).context(Code(Exit::Usage))?,
        };
        if end == End::Stopped {
            return Err(interrupted());
        }
        if let Some(breach) = breaches.first() {
            return Err(anyhow!(Code(Exit::Audit)).context(format!("{}: {breach}", named.name)));
        }
        runs.add(&named.name, scenario.seed.repetition((number / policies) as u32 + 1).0, &summary);
    }
    Ok(Played { runs, notes: Vec::new() })
}

/// Each policy in turn, repetition by repetition, as `simq run` has it.
fn in_real_time(scenario: &Scenario, order: &Order<'_>) -> anyhow::Result<Played> {
    let args = args::Run {
        scenario: Default::default(),
        database_url: order.database_url.map(str::to_owned),
        keep: false,
        out: None,
        policies: Vec::new(),
        seed: None,
        repetitions: None,
        json: false,
        quiet: order.quiet,
        strict: false,
    };
    let runtime = runtime()?;
    let comparison = runtime.block_on(run::compare(scenario.clone(), &args))?;
    if comparison.partial {
        return Err(interrupted());
    }
    let (breaches, notes): (Vec<String>, Vec<String>) = comparison.warnings.into_iter().partition(|said| said.starts_with(AUDIT));
    if let Some(breach) = breaches.first() {
        return Err(anyhow!(Code(Exit::Audit)).context(breach.clone()));
    }
    let mut played = Played { runs: empty(order, fingerprint(&comparison.conditions.0)), notes };
    let spoilt: BTreeSet<u32> =
        comparison.runs.iter().filter(|run| run.summary.limit == Limit::Harness).map(|run| run.repetition).collect();
    // A moment's load spoils a repetition, for all policies, since they are compared within it; enough others are as good as all.
    let left = scenario.repetitions as usize - spoilt.len();
    let leave_out = !spoilt.is_empty() && left >= Rule::default().least;
    for run in comparison.runs.iter().filter(|run| !leave_out || !spoilt.contains(&run.repetition)) {
        played.runs.add(&run.policy, run.seed, &run.summary);
        if run.summary.limit == Limit::Harness {
            let evidence = &run.summary.limit_evidence;
            let why = format!("the harness was the limit of `{}`, repetition {}: {evidence}", run.policy, run.repetition);
            played.runs.unfit.push(why);
        }
    }
    if leave_out {
        let (out, all) = (spoilt.len(), scenario.repetitions);
        played.notes.push(format!("{out} of {all} repetitions were left out, since the harness was their limit"));
    }
    Ok(played)
}

/// Of the circumstances, those that must be alike for real figures to be compared.
fn fingerprint(conditions: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let facts = [
        ("os", "machine.os"),
        ("cores", "machine.cores"),
        ("processor", "machine.processor"),
        ("postgres", "postgres.server_version"),
        ("postgres_kind", "postgres.kind"),
        ("fsync", "postgres.fsync"),
        ("build", "simq.build"),
    ];
    let fact = |(name, key): (&str, &str)| {
        let value = conditions.get(key)?;
        // A minor release of Postgres is no other machine.
        let value = if name == "postgres" { value.split(['.', ' ']).next().unwrap_or_default() } else { value };
        Some((name.to_owned(), value.to_owned()))
    };
    facts.into_iter().filter_map(fact).collect()
}

/// The time and the machine of a report, from its conditions.
pub(in crate::cli) fn circumstances(conditions: &BTreeMap<String, String>) -> (Time, BTreeMap<String, String>) {
    match conditions.get("world").map(String::as_str) {
        Some("virtual") => (Time::Virtual, BTreeMap::from([("os".to_owned(), os())])),
        _ => (Time::Real, fingerprint(conditions)),
    }
}

fn os() -> String {
    format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)
}

fn measure_engine(scenario: &Scenario, order: &Order<'_>) -> anyhow::Result<BTreeMap<String, Vec<f64>>> {
    let tell = |sentence: &str| {
        if !order.quiet {
            say(sentence);
        }
    };
    runtime()?.block_on(async {
        let lent = Lent::borrow(order.database_url, scenario.database.durable, &tell).await?;
        let note = format!("simq {}: the engine's probe", env!("CARGO_PKG_VERSION"));
        let schema = Schema::create(&lent.options, &lent.schema(0, 1), &note).await.context(Code(Exit::Environment))?;
        let probed = probe(&schema, ROUNDS).await.context(Code(Exit::Environment));
        let dropped = schema.drop().await.context(Code(Exit::Environment));
        lent.give_back().await?;
        dropped?;
        Ok(probed?.ratios)
    })
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn interrupted() -> anyhow::Error {
    anyhow!(Code(Exit::Interrupted)).context("interrupted: there is nothing to judge")
}
