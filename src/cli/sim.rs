//! `simq sim`: a scenario in virtual time, from a file to a report.

use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};

use super::calibrate::PROFILE;
use super::exit::Code;
use super::headway::Headway;
use super::run::{AUDIT, Wanted, narrow, try_out, width};
use super::say::say;
use super::{Exit, args, scenario};
use crate::metrics::{End, RunRecord};
use crate::profile::Profile;
use crate::real::Clock;
use crate::report::{self, Comparison, Conditions, Run};
use crate::scenario::Scenario;
use crate::sim::{self, Outcome, Plan, replicate};

pub(super) fn main(args: args::Sim) -> anyhow::Result<Exit> {
    let (scenario, source) = scenario::load(&args.scenario)?;
    let wanted = Wanted { policies: &args.policies, repetitions: args.seeds, seed: args.seed };
    let scenario = narrow(scenario, &wanted)?;
    let profile = profile(&args)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("reports").join(format!("{}-sim", scenario.name)));
    try_out(&out)?;
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN);
    announce_memory(&scenario, threads, args.quiet);
    let stop = super::stop::listen(args.quiet)?;
    let clock = Clock::starting_in(Duration::ZERO);
    let played = play(scenario, &profile, threads, stop, args.quiet)?;
    conclude(&played, clock.now().since_start(), &source, &out, &args)
}

/// How fast the real parts are, as the flags have it.
fn profile(args: &args::Sim) -> anyhow::Result<Profile> {
    let here = Path::new(PROFILE);
    match &args.profile {
        Some(path) => read_profile(path),
        None if args.ideal => Ok(Profile::ideal()),
        None if here.exists() => read_profile(here),
        None => Ok(Profile::built_in()),
    }
}

/// The profile in this file.
pub(super) fn read_profile(path: &Path) -> anyhow::Result<Profile> {
    let usage = || Code(Exit::Usage);
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read the profile `{}`", path.display()))
        .context(usage())?;
    Profile::parse(&text).map_err(|error| anyhow!(usage()).context(format!("`{}` is not a profile: {error}", path.display())))
}

/// Bytes that a job takes while its run is under way, with one attempt: its arrival, its row, its record, the attempt and the
/// downstream's record of it. Each further attempt takes about 240 more. Measured as the growth of VmHWM from 100,000 to 600,000 jobs.
const BYTES_PER_JOB: u64 = 400;
/// And once it is over, for the charts and tables of the first seed.
const BYTES_PER_JOB_KEPT: u64 = 300;
/// Bytes of a run's figures.
const BYTES_PER_RUN: u64 = 2000;
/// From here on it is said beforehand.
const WORTH_SAYING: u64 = 256 << 20;

/// What it will take, if that is worth saying.
fn announce_memory(scenario: &Scenario, threads: NonZero<usize>, quiet: bool) {
    let runs = u64::from(scenario.repetitions) * scenario.policies.len() as u64;
    let at_once = runs.min(threads.get() as u64);
    let per_job = BYTES_PER_JOB * at_once + BYTES_PER_JOB_KEPT * (scenario.policies.len() as u64 - 1);
    let bytes = scenario.job_count().saturating_mul(per_job).saturating_add(runs * BYTES_PER_RUN);
    if bytes >= WORTH_SAYING && !quiet {
        let gib = bytes as f64 / (1_u64 << 30) as f64;
        let many = |count: u64, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
        say(&format!(
            "{} jobs under {}, {}, {at_once} at once: at least {gib:.1} GiB of memory, more with each retry; fewer `--threads` take less",
            scenario.job_count(),
            many(scenario.policies.len() as u64, "policy", "policies"),
            many(runs, "run", "runs"),
        ));
    }
}

/// What was played.
pub(super) struct Played {
    pub(super) comparison: Comparison,
    events: u64,
}

/// Every policy under every seed. The records of the first seed are kept for the charts and tables of it, of the others the figures.
pub(super) fn play(
    scenario: Scenario,
    profile: &Profile,
    threads: NonZero<usize>,
    stop: &AtomicBool,
    quiet: bool,
) -> anyhow::Result<Played> {
    let policies = scenario.policies.len();
    let headway = Headway::of(u64::from(scenario.repetitions) * policies as u64, quiet);
    let failed = AtomicBool::new(false);
    let run = |number: usize| -> Option<Result<Outcome, sim::Error>> {
        // One that can't be played ends it all. Those with a lower number have begun, so that the first to fail is always the same.
        if failed.load(Ordering::Relaxed) {
            return None;
        }
        let (repetition, index) = (number / policies + 1, number % policies);
        let policy = &scenario.policies[index].policy;
        let seed = scenario.seed.repetition(repetition as u32);
        let mut outcome = sim::run(Plan { scenario: &scenario, policy, seed, profile, tape: false }, stop);
        match &mut outcome {
            Ok(outcome) if repetition > 1 => outcome.record = RunRecord::dropped(),
            Ok(_) => {}
            Err(_) => failed.store(true, Ordering::Relaxed),
        }
        headway.one_more();
        Some(outcome)
    };
    let outcomes = replicate(scenario.repetitions as usize * policies, threads, stop, run);
    drop(headway);
    let mut whole = Vec::with_capacity(outcomes.len());
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let (repetition, index) = (number / policies + 1, number % policies);
        let (policy, seed) = (&scenario.policies[index].name, scenario.seed.repetition(repetition as u32).0);
        let outcome = outcome.flatten().transpose();
        whole.push(
            outcome.map_err(|error| anyhow!(Code(Exit::Usage)).context(format!("policy `{policy}`, seed {seed}: {error}")))?,
        );
    }
    Ok(gather(scenario, conditions(profile), whole))
}

/// The seeds that were played to their end under every policy.
fn gather(scenario: Scenario, conditions: Conditions, outcomes: Vec<Option<Outcome>>) -> Played {
    let mut comparison = Comparison { scenario, runs: vec![], conditions, warnings: vec![], partial: false };
    let mut events = 0;
    let mut outcomes = outcomes.into_iter();
    for repetition in 1..=comparison.scenario.repetitions {
        let policies = comparison.scenario.policies.len();
        let of_seed: Vec<Outcome> = outcomes.by_ref().take(policies).flatten().filter(|one| one.end != End::Stopped).collect();
        if of_seed.len() < policies {
            // A seed that was cut short says nothing that can be compared.
            comparison.partial = true;
            continue;
        }
        for (named, outcome) in comparison.scenario.policies.iter().zip(of_seed) {
            events += outcome.events;
            let about = |breach: &String| format!("{AUDIT}{}, repetition {repetition}: {breach}", named.name);
            comparison.warnings.extend(outcome.breaches.iter().map(about));
            comparison.runs.push(Run {
                policy: named.name.clone(),
                repetition,
                seed: comparison.scenario.seed.repetition(repetition).0,
                record: outcome.record,
                summary: outcome.summary,
                partial: false,
            });
        }
    }
    Played { comparison, events }
}

/// What a reader must know of a world that was not there.
fn conditions(profile: &Profile) -> Conditions {
    let mut facts = std::collections::BTreeMap::new();
    facts.insert("world".to_owned(), "virtual".to_owned());
    facts.insert("profile.about".to_owned(), profile.about.clone());
    for (name, cost) in [
        ("claim", profile.claim),
        ("settle", profile.settle),
        ("other", profile.other),
        ("insert", profile.insert),
        ("call", profile.call),
    ] {
        facts.insert(
            format!("profile.{name}"),
            format!(
                "{} us and {} us per job of processor, {} us beside that (p99 {})",
                cost.work_us, cost.work_per_job_us, cost.wait_us, cost.wait_p99_us
            ),
        );
    }
    let timer = profile.timer;
    facts.insert("profile.processors".to_owned(), profile.processors.to_string());
    facts.insert(
        "profile.timer".to_owned(),
        format!("rounded up to {} us, {} us late (p99 {})", timer.grain_us, timer.late_us, timer.late_p99_us),
    );
    facts.insert("simq.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Conditions(facts)
}

/// Writes the report, prints the result, and says how to exit.
fn conclude(played: &Played, took: Duration, source: &str, out: &Path, args: &args::Sim) -> anyhow::Result<Exit> {
    let comparison = &played.comparison;
    if comparison.runs.is_empty() {
        say("stopped before a seed was finished: there is nothing to report");
        return Ok(Exit::Interrupted);
    }
    let written = report::write(comparison, out, source).context(Code(Exit::Environment));
    print(played, took, source, out, args, written.is_ok()).context(Code(Exit::Environment))?;
    written?;
    for warning in &comparison.warnings {
        say(&format!("warning: {warning}"));
    }
    Ok(if !comparison.warnings.is_empty() {
        Exit::Audit
    } else if comparison.partial {
        Exit::Interrupted
    } else if !super::asserted::hold(comparison, &args.scenario, args.quiet) {
        Exit::Refused
    } else {
        Exit::Done
    })
}

/// The result, on stdout. How long it took goes to stderr, since it is the only thing that another run of the same seed has otherwise.
fn print(played: &Played, took: Duration, source: &str, out: &Path, args: &args::Sim, written: bool) -> io::Result<()> {
    let comparison = &played.comparison;
    let mut stdout = anstream::stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &report::summary_json(comparison, source)).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else if !args.quiet {
        writeln!(stdout, "{}", report::table(comparison, true, width()))?;
        for sentence in report::verdict(comparison) {
            writeln!(stdout, "{sentence}")?;
        }
        writeln!(
            stdout,
            "\nVirtual time. {}; {} events; {}.",
            seeds(comparison),
            played.events,
            comparison.conditions.0["profile.about"]
        )?;
        if written {
            writeln!(stdout, "Report: {}", out.display())?;
        }
        let rate = played.events as f64 / took.as_secs_f64() / 1e6;
        say(&format!("{:.2} s, {rate:.1} million events a second", took.as_secs_f64()));
    }
    stdout.flush()
}

/// Which seeds were played.
fn seeds(comparison: &Comparison) -> String {
    let (first, asked) = (comparison.scenario.seed.0, comparison.scenario.repetitions);
    match comparison.runs.len() / comparison.scenario.policies.len().max(1) {
        done if done < asked as usize => format!("{done} of {asked} seeds from {first}"),
        1 => format!("Seed {first}"),
        done => format!("{done} seeds from {first}"),
    }
}
