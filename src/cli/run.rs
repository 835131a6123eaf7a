//! `simq run`: from a scenario file to a report.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use tokio::sync::watch;

use super::database::Lent;
use super::exit::Code;
use super::progress::Progress;
use super::say::say;
use super::{Exit, args, scenario};
use crate::metrics::Limit;
use crate::real::{self, End, Live, Outcome, Plan};
use crate::report::{self, Comparison, Conditions, Run};
use crate::rng::Seed;
use crate::scenario::{NamedPolicy, Scenario};

/// How a warning begins that the audit gives.
pub(super) const AUDIT: &str = "AUDIT: ";

pub(super) fn main(args: args::Run) -> anyhow::Result<Exit> {
    let (scenario, source) = scenario::load(&args.scenario)?;
    let wanted = Wanted { policies: &args.policies, repetitions: args.repetitions, seed: args.seed };
    let scenario = narrow(scenario, &wanted)?;
    if args.keep && args.database_url.is_none() {
        let message = "`--keep` needs a database that stays: give one with --database-url or DATABASE_URL";
        return Err(anyhow!(Code(Exit::Usage)).context(message));
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("reports").join(&scenario.name));
    try_out(&out)?;
    super::postgres::shed_pgoptions()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let comparison = runtime.block_on(compare(scenario, &args))?;
    conclude(&comparison, &source, &out, &args)
}

/// Whether a report can be written there: asked before a long run.
pub(super) fn try_out(out: &std::path::Path) -> anyhow::Result<()> {
    report::try_out(out).map_err(|error| {
        let code = if matches!(error, report::Error::Write { .. }) { Exit::Environment } else { Exit::Usage };
        anyhow::Error::new(error).context(Code(code))
    })
}

/// What flags change of a scenario.
pub(super) struct Wanted<'a> {
    pub(super) policies: &'a [String],
    pub(super) repetitions: Option<u32>,
    pub(super) seed: Option<u64>,
}

/// The scenario as the flags want it.
pub(super) fn narrow(mut scenario: Scenario, args: &Wanted<'_>) -> anyhow::Result<Scenario> {
    let usage = |message: String| anyhow!(Code(Exit::Usage)).context(message);
    let known: Vec<String> = scenario.policies.iter().map(|policy| policy.name.clone()).collect();
    if let Some(unknown) = args.policies.iter().find(|name| !known.contains(name)) {
        let message = format!("the scenario has no policy `{unknown}`: it has {}", known.join(", "));
        return Err(usage(message));
    }
    if !args.policies.is_empty() {
        scenario.policies.retain(|policy| args.policies.contains(&policy.name));
    }
    scenario.repetitions = args.repetitions.unwrap_or(scenario.repetitions);
    scenario.seed = args.seed.map_or(scenario.seed, Seed);
    Ok(scenario)
}

/// Runs every policy of every repetition, until done or told to stop.
pub(super) async fn compare(scenario: Scenario, args: &args::Run) -> anyhow::Result<Comparison> {
    let mut stop = listen_for_stop(args.quiet)?;
    let live = Arc::new(Live::default());
    let progress = Progress::new(&scenario, live.clone(), args.quiet);
    let url = args.database_url.as_deref().filter(|url| !url.is_empty());
    let mut comparison =
        Comparison { scenario, runs: vec![], conditions: Conditions::default(), warnings: vec![], partial: false };
    let tell = |line: &str| progress.say(line);
    let lent = tokio::select! {
        lent = Lent::borrow(url, comparison.scenario.database.durable, &tell) => lent?,
        Ok(_) = stop.wait_for(|stop| *stop) => return Ok(comparison),
    };
    comparison.conditions = Conditions(lent.facts().await?);
    if cfg!(debug_assertions) {
        comparison.warnings.push("simq is a debug build, several times slower than it can be: build it with --release".into());
    }
    let mut hall = Hall { lent, live, stop, keep: args.keep };
    let result = play_all(&mut comparison, &mut hall, &progress).await;
    progress.finish();
    hall.lent.give_back().await?;
    result.map(|()| comparison)
}

/// Where the runs take place.
struct Hall {
    lent: Lent,
    live: Arc<Live>,
    stop: watch::Receiver<bool>,
    keep: bool,
}

/// Each policy in turn, repetition by repetition; what was run before a failure or a stop stays in the comparison.
async fn play_all(comparison: &mut Comparison, hall: &mut Hall, progress: &Progress) -> anyhow::Result<()> {
    let scenario = comparison.scenario.clone();
    for repetition in 1..=scenario.repetitions {
        for (index, named) in scenario.policies.iter().enumerate() {
            if *hall.stop.borrow() {
                comparison.partial = true;
                return Ok(());
            }
            progress.begin(named, repetition);
            let outcome = play(&scenario, (index, named), repetition, hall).await?;
            progress.end(named, &outcome);
            keep_run(comparison, named, repetition, outcome);
        }
    }
    Ok(())
}

async fn play(
    scenario: &Scenario,
    (index, named): (usize, &NamedPolicy),
    repetition: u32,
    hall: &mut Hall,
) -> anyhow::Result<Outcome> {
    let options = hall.lent.options.clone();
    let plan = Plan {
        scenario,
        policy: &named.policy,
        seed: scenario.seed.repetition(repetition),
        database: &options,
        own_server: hall.lent.is_own(),
        restarter: hall.lent.restarter(),
        schema: hall.lent.schema(index, repetition),
        note: note(scenario, named, repetition),
        keep: hall.keep,
        live: hall.live.clone(),
        stop: hall.stop.clone(),
        tape: false,
    };
    tokio::select! {
        outcome = real::run(plan) => outcome.map_err(|error| {
            let exit = if matches!(error, real::Error::NotOurs) { Exit::Usage } else { Exit::Environment };
            anyhow::Error::new(error).context(Code(exit))
        }),
        ended = hall.lent.ended() => Err(ended),
    }
}

/// Puts a run into the comparison, and says whose fault it is if something was amiss.
fn keep_run(comparison: &mut Comparison, named: &NamedPolicy, repetition: u32, outcome: Outcome) {
    let about = |what: &String| format!("{}, repetition {repetition}: {what}", named.name);
    comparison.warnings.extend(outcome.breaches.iter().map(|breach| format!("{AUDIT}{}", about(breach))));
    comparison.warnings.extend(outcome.warnings.iter().map(about));
    let partial = outcome.end == End::Stopped;
    comparison.partial |= partial;
    comparison.runs.push(Run {
        policy: named.name.clone(),
        repetition,
        seed: comparison.scenario.seed.repetition(repetition).0,
        record: outcome.record,
        summary: outcome.summary,
        partial,
    });
}

/// What somebody who finds the schema should know of it.
fn note(scenario: &Scenario, named: &NamedPolicy, repetition: u32) -> String {
    format!("simq {}: scenario {}, policy {}, repetition {repetition}", env!("CARGO_PKG_VERSION"), scenario.name, named.name)
}

/// Turns true at the first Ctrl-C or SIGTERM; the second ends the process where it is.
fn listen_for_stop(quiet: bool) -> anyhow::Result<watch::Receiver<bool>> {
    let (stopping, stop) = watch::channel(false);
    let mut signals = super::postgres::Stop::listen()?;
    tokio::spawn(async move {
        signals.asked().await;
        if !quiet {
            say("stopping: what is under way is finished; once more to leave at once");
        }
        let _ = stopping.send(true);
        signals.asked().await;
        std::process::exit(Exit::Interrupted as i32);
    });
    Ok(stop)
}

/// Writes the report, prints the result, and says how to exit.
fn conclude(comparison: &Comparison, source: &str, out: &std::path::Path, args: &args::Run) -> anyhow::Result<Exit> {
    if comparison.runs.is_empty() {
        return Ok(Exit::Interrupted);
    }
    // A report that can't be written does not keep the figures from being seen.
    let written = report::write(comparison, out, source).context(Code(Exit::Environment));
    print(comparison, source, out, args, written.is_ok()).context(Code(Exit::Environment))?;
    written?;
    let exit = exit(comparison, args);
    // What the audit found is an error, and so is what makes a strict run fail.
    for warning in comparison.warnings.iter().filter(|w| !args.quiet || w.starts_with(AUDIT) || exit == Exit::Invalid) {
        say(&format!("warning: {warning}"));
    }
    if exit == Exit::Invalid {
        say("error: the measurement is not to be trusted, and --strict was given");
    }
    Ok(exit)
}

/// The result, on stdout.
fn print(comparison: &Comparison, source: &str, out: &std::path::Path, args: &args::Run, written: bool) -> io::Result<()> {
    let mut stdout = anstream::stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &report::summary_json(comparison, source)).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else if !args.quiet {
        write!(stdout, "\n{}\n", report::table(comparison, true, width()))?;
        for sentence in report::verdict(comparison) {
            writeln!(stdout, "{sentence}")?;
        }
        writeln!(stdout, "\n{}", circumstances(comparison))?;
        if written {
            writeln!(stdout, "Report: {}", out.display())?;
        }
    }
    stdout.flush()
}

/// Seed, server and the settings that decide what was measured, in a line.
fn circumstances(comparison: &Comparison) -> String {
    let fact = |name: &str| comparison.conditions.0.get(&format!("postgres.{name}")).map_or("unknown", String::as_str);
    format!(
        "Seed {}; PostgreSQL {} ({}) with fsync {}, full_page_writes {}, synchronous_commit {}.",
        comparison.scenario.seed.0,
        fact("server_version"),
        fact("kind"),
        fact("fsync"),
        fact("full_page_writes"),
        fact("synchronous_commit"),
    )
}

fn exit(comparison: &Comparison, args: &args::Run) -> Exit {
    let spoiled = comparison.warnings.iter().any(|warning| !warning.starts_with(AUDIT))
        || comparison.runs.iter().any(|run| run.summary.limit == Limit::Harness);
    if comparison.warnings.iter().any(|warning| warning.starts_with(AUDIT)) {
        Exit::Audit
    } else if comparison.partial {
        Exit::Interrupted
    } else if args.strict && spoiled {
        Exit::Invalid
    } else if !super::asserted::hold(comparison, &args.scenario, args.quiet) {
        Exit::Refused
    } else {
        Exit::Done
    }
}

pub(super) fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(120)
}
