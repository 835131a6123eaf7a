//! `simq baseline`: figures kept in a small file, to be committed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::exit::Code;
use super::gate::runner::{self, Order};
use super::say::say;
use super::{Exit, args, compare, scenario};
use crate::check::{self, Runs, Time, WATCHED, median, show};
use crate::metrics::Metric;

/// Repetitions of a new baseline: in virtual time each is another seed, and in real time they show the noise.
pub(super) const IN_VIRTUAL_TIME: u32 = 3;
pub(super) const IN_REAL_TIME: u32 = 10;

pub(super) fn main(args: args::Baseline) -> anyhow::Result<Exit> {
    match args.command {
        args::BaselineCommand::Save(args) => save(&args),
        args::BaselineCommand::List { dir } => list(&dir).map(|()| Exit::Done),
        args::BaselineCommand::Show { file } => describe(&file).map(|()| Exit::Done),
        args::BaselineCommand::Rm { files } => remove(&files).map(|()| Exit::Done),
    }
}

fn usage(message: String) -> anyhow::Error {
    anyhow!(Code(Exit::Usage)).context(message)
}

/// Reads a baseline.
pub(super) fn read(path: &Path) -> anyhow::Result<Runs> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            usage(format!("there is no baseline `{shown}`: make one with `simq baseline save SCENARIO`, or with --update"))
        }
        _ => usage(format!("`{shown}` can't be read: {error}")),
    })?;
    check::parse(&text).map_err(|error| usage(format!("`{shown}`: {error}")))
}

/// Whether nothing but a baseline, whole or spoilt, would be replaced.
pub(super) fn may_replace(path: &Path) -> anyhow::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) if text.contains("\"simq_baseline\"") || text.trim().is_empty() => Ok(()),
        Ok(_) => Err(usage(format!("`{}` is not a baseline, and is not replaced by one: name another file", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(usage(format!("`{}` can't be read: {error}", path.display()))),
    }
}

/// What storing a baseline changed.
pub(super) enum Stored {
    New,
    Same,
    Changed,
}

/// Writes a baseline, whole or not at all. Runs that must not be believed are refused.
pub(super) fn store(path: &Path, runs: &Runs) -> anyhow::Result<Stored> {
    if let Some(why) = runs.unfit.first() {
        return Err(anyhow!(Code(Exit::Invalid)).context(format!("these runs make no baseline: {why}")));
    }
    let text = check::write(runs);
    let before = fs::read_to_string(path).ok();
    let stored = match before {
        None => Stored::New,
        Some(before) if before == text => return Ok(Stored::Same),
        Some(_) => Stored::Changed,
    };
    let write = || -> io::Result<()> {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent)?;
        }
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        fs::write(&draft, &text)?;
        fs::rename(&draft, path)
    };
    write().with_context(|| format!("`{}` can't be written", path.display())).context(Code(Exit::Environment))?;
    Ok(stored)
}

fn save(args: &args::BaselineSave) -> anyhow::Result<Exit> {
    let is_report = args.source.is_dir() || args.source.extension().is_some_and(|extension| extension == "json");
    let checked = |name: &str| -> anyhow::Result<PathBuf> {
        let out = args.out.clone().unwrap_or_else(|| PathBuf::from("baselines").join(format!("{name}.json")));
        may_replace(&out)?;
        match out.exists() && !args.update {
            true => Err(usage(format!("there is a baseline `{}` already: give --update to replace it", out.display()))),
            false => Ok(out),
        }
    };
    let (out, runs) = if is_report {
        let runs = compare::load(&args.source)?.runs;
        (checked(&runs.scenario)?, runs)
    } else {
        let (scenario, source) = scenario::load(&args.source)?;
        let out = checked(&scenario.name)?;
        let fingerprint = scenario::fingerprint(&args.source, &source);
        let (time, usual) = match args.time {
            args::InTime::Virtual => (Time::Virtual, IN_VIRTUAL_TIME),
            args::InTime::Real => (Time::Real, IN_REAL_TIME),
        };
        let order = Order {
            scenario: &scenario,
            fingerprint: &fingerprint,
            time,
            repetitions: args.repetitions.unwrap_or(usual),
            database_url: args.database_url.as_deref().filter(|url| !url.is_empty()),
            quiet: args.quiet,
        };
        (out, runner::play(&order)?.runs)
    };
    store(&out, &runs)?;
    if !args.quiet {
        say(&format!("`{}`: {}", out.display(), summary(&runs)));
    }
    Ok(Exit::Done)
}

/// A baseline in a line.
fn summary(runs: &Runs) -> String {
    let time = if runs.time == Time::Virtual { "virtual" } else { "real" };
    let policies: Vec<&str> = runs.policies.iter().map(|policy| policy.name.as_str()).collect();
    format!(
        "scenario {}, {time} time, {} repetitions of {}, by simq {} on {}",
        runs.scenario,
        runs.repetitions(),
        policies.join(", "),
        runs.simq,
        runs.machine.get("processor").or(runs.machine.get("os")).map_or("an unknown machine", String::as_str),
    )
}

fn list(dir: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(dir).map_err(|error| usage(format!("`{}` can't be read: {error}", dir.display())))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut out = io::stdout().lock();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("`{}` can't be read", file.display()))?;
        let said = check::parse(&text).map_or_else(|error| format!("not usable: {error}"), |runs| summary(&runs));
        writeln!(out, "{}: {said}", file.display())?;
    }
    if files.is_empty() {
        say(&format!("there is no baseline in `{}`: make one with `simq baseline save SCENARIO`", dir.display()));
    }
    Ok(())
}

/// The figures that are compared in any case, and the fingerprint, in full.
fn describe(file: &Path) -> anyhow::Result<()> {
    let runs = read(file)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}\nfingerprint {}", summary(&runs), runs.fingerprint)?;
    for (key, value) in &runs.machine {
        writeln!(out, "{key}: {value}")?;
    }
    for policy in &runs.policies {
        writeln!(out, "\n{}", policy.name)?;
        for metric in WATCHED.iter().filter_map(|(name, _)| Metric::named(name)) {
            if let Some(values) = policy.values(metric.name) {
                let each: Vec<String> = values.iter().map(|value| show(metric.unit, *value)).collect();
                writeln!(out, "  {:<18} {:>10}   of {}", metric.name, show(metric.unit, median(&values)), each.join(", "))?;
            }
        }
    }
    Ok(())
}

fn remove(files: &[PathBuf]) -> anyhow::Result<()> {
    for file in files {
        if !file.exists() {
            return Err(usage(format!("there is no file `{}`", file.display())));
        }
        may_replace(file)?;
    }
    for file in files {
        fs::remove_file(file)
            .with_context(|| format!("`{}` can't be removed", file.display()))
            .context(Code(Exit::Environment))?;
    }
    Ok(())
}
