//! `simq gate`: runs a scenario, holds it against its assertions and a baseline, and decides.
//!
//! What must be right beforehand (the baseline is one, and of this scenario) is checked before anything runs. Then everything is judged and
//! told in every format that was asked for, and the exit code says what it comes to: 0 yes, 3 no, 4 it can't be said.

mod criterion;
mod output;
pub(super) mod runner;

use std::path::Path;

use anyhow::anyhow;

use super::baseline::{self, Stored};
use super::exit::Code;
use super::say::say;
use super::{Exit, args, scenario};
use crate::check::{self, Judgement, Outcome, Rule, Runs, Time, Watched};
use crate::scenario::Scenario;
use output::Wanted;
use runner::{Order, Played};

pub(super) fn main(args: args::Gate) -> anyhow::Result<Exit> {
    let wanted: Vec<Wanted> = args.formats.iter().map(|word| Wanted::parse(word).map_err(usage)).collect::<Result<_, _>>()?;
    let mut judgement = Judgement::default();
    if let Some(file) = &args.scenario {
        judgement = of_scenario(file, &args)?;
    } else if args.baseline.is_some() {
        return Err(usage("`--baseline` is of a scenario: name one".to_owned()));
    }
    if let Some(dir) = &args.criterion {
        let benches = criterion::read(dir, &args.criterion_baseline)?;
        if judgement.name.is_empty() {
            (judgement.name, judgement.file) = ("benches".to_owned(), dir.display().to_string());
        }
        judgement.findings.extend(check::benches(&benches, args.criterion_tolerance, Rule::default()));
    }
    let outcome = judgement.outcome(args.strict);
    for one in &wanted {
        one.tell(&judgement, outcome, args.strict)?;
    }
    Ok(match outcome {
        Outcome::Pass => Exit::Done,
        Outcome::Fail => Exit::Refused,
        Outcome::Undecided => Exit::Invalid,
    })
}

fn usage(message: String) -> anyhow::Error {
    anyhow!(Code(Exit::Usage)).context(message)
}

fn of_scenario(file: &Path, args: &args::Gate) -> anyhow::Result<Judgement> {
    let (scenario, source) = scenario::load(file)?;
    let fingerprint = scenario::fingerprint(file, &source);
    let watched = check::watched(&args.metrics).map_err(usage)?;
    let (old, before) = baselines(args)?;
    let time = time(args.time, old.as_ref().or(before.as_ref()));
    if let (Some(old), Some(path)) = (&old, &args.baseline) {
        let fits = old.is_for(&scenario.name, &fingerprint, time);
        fits.map_err(|error| usage(format!("`{}`: {error}", path.display())))?;
    }
    let of_baseline = old.as_ref().or(before.as_ref().filter(|before| before.time == time));
    let repetitions = repetitions(args, &scenario, of_baseline, time)?;
    if let (Some(old), Time::Real) = (&old, time) {
        enough(old, repetitions)?;
    }
    let order = Order {
        scenario: &scenario,
        fingerprint: &fingerprint,
        time,
        repetitions,
        database_url: args.database_url.as_deref().filter(|url| !url.is_empty()),
        quiet: args.quiet,
    };
    let played = runner::play(&order)?;
    let mut judgement = judge(&scenario, file, &played, old.as_ref(), &watched);
    if let (Some(path), true) = (&args.baseline, args.update) {
        update(path, &played.runs, &mut judgement)?;
    }
    Ok(judgement)
}

/// The baseline to compare with, and the one to be replaced, if it can be read: it says how often to run.
fn baselines(args: &args::Gate) -> anyhow::Result<(Option<Runs>, Option<Runs>)> {
    match (&args.baseline, args.update) {
        (Some(path), true) => {
            baseline::may_replace(path)?;
            Ok((None, baseline::read(path).ok()))
        }
        (Some(path), false) => Ok((Some(baseline::read(path)?), None)),
        (None, _) => Ok((None, None)),
    }
}

/// Everything that can be said of the runs.
fn judge(scenario: &Scenario, file: &Path, played: &Played, old: Option<&Runs>, watched: &[Watched]) -> Judgement {
    let runs = &played.runs;
    let mut findings = check::assertions(&scenario.assertions, runs);
    let mut notes = played.notes.clone();
    notes.extend(runs.unfit.iter().map(|why| format!("not to be trusted: {why}")));
    match (old, runs.time) {
        (Some(old), Time::Virtual) => findings.extend(check::exact(runs, old)),
        (Some(old), Time::Real) => findings.extend(check::noisy(runs, old, watched, Rule::default())),
        (None, _) => notes.push("there is no baseline: only the assertions were judged".to_owned()),
    }
    Judgement { name: scenario.name.clone(), file: file.display().to_string(), findings, notes, figures: runs.history() }
}

fn time(wanted: Option<args::InTime>, old: Option<&Runs>) -> Time {
    match (wanted, old) {
        (Some(args::InTime::Real), _) => Time::Real,
        (Some(args::InTime::Virtual), _) | (None, None) => Time::Virtual,
        (None, Some(old)) => old.time,
    }
}

fn repetitions(args: &args::Gate, scenario: &Scenario, old: Option<&Runs>, time: Time) -> anyhow::Result<u32> {
    let of_baseline = old.map(|old| old.repetitions() as u32);
    match (args.repetitions, of_baseline, time) {
        (Some(wanted), Some(has), Time::Virtual) if wanted != has && !args.update => Err(usage(format!(
            "the baseline has {has} repetitions, and virtual time compares each of them: leave --repetitions out"
        ))),
        (Some(wanted), ..) => Ok(wanted),
        (None, Some(has), _) => Ok(has),
        (None, None, Time::Virtual) if args.update => Ok(baseline::IN_VIRTUAL_TIME),
        (None, None, Time::Real) if args.update => Ok(baseline::IN_REAL_TIME),
        (None, None, _) => Ok(scenario.repetitions),
    }
}

/// Fewer repetitions than the rule wants can't be compared, and it is better said before than after them.
fn enough(old: &Runs, repetitions: u32) -> anyhow::Result<()> {
    let least = Rule::default().least;
    let (theirs, ours) = (old.repetitions(), repetitions as usize);
    match theirs.min(ours) < least {
        true => Err(usage(format!(
            "real figures are compared over {least} repetitions at least; the baseline has {theirs}, and {ours} were asked for"
        ))),
        false => Ok(()),
    }
}

/// Writes the baseline anew, unless the runs are not fit for one.
fn update(path: &Path, runs: &Runs, judgement: &mut Judgement) -> anyhow::Result<()> {
    if judgement.findings.iter().any(|finding| finding.fails) {
        judgement.notes.push(format!("`{}` was not written, since an assertion does not hold", path.display()));
        return Ok(());
    }
    let said = match baseline::store(path, runs)? {
        Stored::New => "was written",
        Stored::Same => "is as it was",
        Stored::Changed => "was written anew",
    };
    say(&format!("`{}` {said}", path.display()));
    judgement.notes.retain(|note| !note.starts_with("there is no baseline"));
    judgement.notes.push(format!("`{}` {said}", path.display()));
    if judgement.findings.is_empty() {
        let finding = check::Finding {
            tier: if runs.time == Time::Virtual { check::Tier::Exact } else { check::Tier::Baseline },
            policy: None,
            metric: "the baseline".to_owned(),
            unit: crate::metrics::Unit::Ratio,
            verdict: check::Verdict::Held,
            fails: false,
            sentence: said.to_owned(),
            line: None,
            new: None,
            old: None,
        };
        judgement.findings.push(finding);
    }
    Ok(())
}
