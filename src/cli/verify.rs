//! `simq verify`: what is known beforehand, beside what simq makes of it.

use std::io::{self, Write};
use std::num::NonZero;

use anyhow::Context;
use serde_json::{Value, json};

use super::exit::Code;
use super::{Exit, args};
use crate::rng::Seed;
use crate::sim::replicate;
use crate::verify::{CHAPTERS, Check, Effort, Within};

pub(super) fn main(args: &args::Verify) -> anyhow::Result<Exit> {
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let effort = Effort { seed: args.seed.map_or(effort.seed, Seed), ..effort };
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN);
    let stop = super::stop::listen(false)?;
    let chapters = replicate(CHAPTERS.len(), threads, stop, |number| (CHAPTERS[number].run)(&effort));
    let off = chapters.iter().flatten().flatten().filter(|check| !check.holds()).count();
    let whole = chapters.iter().all(Option::is_some);
    if args.json { print_json(&effort, &chapters) } else { print(&effort, &chapters) }.context(Code(Exit::Environment))?;
    Ok(match (whole, off) {
        (false, _) => Exit::Interrupted,
        (true, 0) => Exit::Done,
        (true, _) => Exit::Refused,
    })
}

fn print(effort: &Effort, chapters: &[Option<Vec<Check>>]) -> io::Result<()> {
    let mut out = anstream::stdout();
    let width = chapters.iter().flatten().flatten().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for (chapter, checks) in CHAPTERS.iter().zip(chapters) {
        let Some(checks) = checks else { continue };
        writeln!(out, "{}: {}", chapter.title, chapter.about)?;
        writeln!(out, "  {:<width$}  {:>12}  {:>12}  distance", "", "expected", "measured")?;
        for check in checks {
            let (expected, measured) = (figure(check.expected), figure(check.measured));
            let verdict = if check.holds() { "" } else { "  OFF" };
            writeln!(out, "  {:<width$}  {expected:>12}  {measured:>12}  {}{verdict}", check.name, distance(check))?;
        }
        writeln!(out)?;
    }
    let all: Vec<&Check> = chapters.iter().flatten().flatten().collect();
    let hold = all.iter().filter(|check| check.holds()).count();
    let furthest = all.iter().filter_map(|check| check.distance()).map(f64::abs).fold(0.0, f64::max);
    writeln!(
        out,
        "{hold} of {} hold; the furthest mean is {furthest:.1} standard errors off, 4 are allowed. Seed {}.",
        all.len(),
        effort.seed.0
    )?;
    out.flush()
}

/// Six digits, or all before the point.
fn figure(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = if value.fract() == 0.0 { 0 } else { (6 - digits).clamp(0, 7) as usize };
    format!("{value:.decimals$}")
}

fn distance(check: &Check) -> String {
    match check.within {
        Within::Exactly => "exact".to_owned(),
        Within::Bound => "at most".to_owned(),
        Within::Of(tolerance) => format!("within {}", figure(tolerance)),
        Within::Errors(error) => format!("{:+.1} se of {}", check.distance().unwrap_or(0.0), figure(error)),
    }
}

fn print_json(effort: &Effort, chapters: &[Option<Vec<Check>>]) -> io::Result<()> {
    let check = |check: &Check| {
        let (kind, tolerance) = match check.within {
            Within::Exactly => ("exact", 0.0),
            Within::Bound => ("at-most", 0.0),
            Within::Of(tolerance) => ("absolute", tolerance),
            Within::Errors(error) => ("standard-error", error),
        };
        json!({
            "name": check.name,
            "expected": check.expected,
            "measured": check.measured,
            "tolerance": kind,
            "tolerance_value": tolerance,
            "standard_errors": check.distance(),
            "holds": check.holds(),
        })
    };
    let chapters: Vec<Value> = CHAPTERS
        .iter()
        .zip(chapters)
        .filter_map(|(chapter, checks)| {
            let checks: Vec<Value> = checks.as_ref()?.iter().map(check).collect();
            Some(json!({ "title": chapter.title, "about": chapter.about, "checks": checks }))
        })
        .collect();
    let mut out = anstream::stdout();
    serde_json::to_writer_pretty(&mut out, &json!({ "seed": effort.seed.0, "chapters": chapters })).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()
}
