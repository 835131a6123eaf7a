//! One policy: every delay, and a small picture.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

use super::facts::{Facts, columns, duration, interval, span};
use crate::cli::exit::Code;
use crate::cli::{Exit, args};
use crate::policy::cells::Cell;
use crate::policy::{ClockBase, Policy};
use crate::report::{Delays, save_delays};

/// Width of the picture in letters.
const WIDTH: usize = 48;

pub(super) fn main(args: &args::Show, file: Option<&Path>) -> anyhow::Result<Exit> {
    let facts = Facts::of(super::find(&args.name, file)?, args.attempts);
    if let Some(path) = &args.png {
        save_delays(&[band(&facts)], path).context(Code(Exit::Environment))?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &facts.json()).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Done);
    }
    let named = &facts.named;
    let version = if named.version.is_empty() { String::new() } else { format!(" {}", named.version) };
    writeln!(out, "{}: {}{version}, {}", named.name, named.system, named.source)?;
    writeln!(out, "{}", sentence(&facts))?;
    writeln!(out)?;
    write!(out, "{}", columns(&rows(&facts)))?;
    if let Some(path) = &args.png {
        writeln!(out, "\nPicture: {}", path.display())?;
    }
    Ok(Exit::Done)
}

/// What the policy is beside its delays, in a line or two.
fn sentence(facts: &Facts) -> String {
    let policy = &facts.named.policy;
    let mut parts = vec![
        format!("retries: {}", facts.limit()),
        format!("total: {}", facts.total()),
        format!("jitter: {}", policy.jitter.name()),
        format!("cap: {}", facts.cap()),
    ];
    parts.extend(policy.floor.map(|floor| format!("floor: {}", duration(floor))));
    parts.extend(policy.budget.as_ref().map(|budget| format!("budget: {}", budget.name())));
    parts.extend(policy.breaker.as_ref().map(|breaker| format!("breaker: opens for {}", duration(breaker.open))));
    parts.extend(policy.rate.as_ref().map(|_| "rate: adaptive".to_owned()));
    parts.push(format!("Retry-After: {}", policy.retry_after.name()));
    parts.push(format!("retries {}", retried(policy)));
    if !policy.clock.quantum.is_zero() {
        parts.push(format!("due retries are looked for every {}", duration(policy.clock.quantum)));
    }
    if policy.clock.base == ClockBase::Claim {
        parts.push("delays count from the claim".to_owned());
    }
    parts.join(" · ")
}

fn retried(policy: &Policy) -> String {
    let classes = &policy.classes;
    let list = |patterns: &[crate::policy::Pattern]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut text = match (classes.retry.is_empty(), policy.classify) {
        (false, _) => list(&classes.retry),
        (true, true) => "what may pass".to_owned(),
        (true, false) => "every failure".to_owned(),
    };
    if !classes.throttled.is_empty() {
        text += &format!(", {} as throttling", list(&classes.throttled));
    }
    if !classes.fatal.is_empty() {
        text += &format!(", not {}", list(&classes.fatal));
    }
    text
}

fn rows(facts: &Facts) -> Vec<Vec<String>> {
    let mut rows = vec![["retry", "delay", "mean", "so far", "grain", ""].map(str::to_owned).to_vec()];
    let longest = facts.cells.iter().map(|cell| cell.high).fold(0.0, f64::max);
    let shortest = facts.cells.iter().map(|cell| if cell.low > 0.0 { cell.low } else { cell.high }).filter(|secs| *secs > 0.0);
    let shortest = shortest.fold(f64::INFINITY, f64::min);
    let mut elapsed = 0.0;
    for cell in &facts.cells {
        elapsed += cell.mean;
        let beyond = facts.retries.is_some_and(|retries| cell.n > retries);
        rows.push(vec![
            format!("{}{}", cell.n, if beyond { " *" } else { "" }),
            interval(cell),
            span(cell.mean),
            span(elapsed),
            if cell.grain > 0.0 { span(cell.grain) } else { "–".to_owned() },
            picture(cell, shortest, longest),
        ]);
    }
    if facts.retries.is_some_and(|retries| facts.cells.len() > retries as usize) {
        rows.push(vec!["* beyond the default limit".to_owned()]);
    }
    rows
}

/// The interval as a bar on a logarithmic scale, its mean as a dot.
fn picture(cell: &Cell, shortest: f64, longest: f64) -> String {
    let floor = (shortest / 2.0).max(longest / 1e9);
    let range = (longest / floor).ln();
    let place = |secs: f64| {
        let share = if range > 0.0 && secs > floor { (secs / floor).ln() / range } else { 0.0 };
        (share * (WIDTH - 1) as f64).round() as usize
    };
    if longest <= 0.0 {
        return "●".to_owned();
    }
    let (from, to, mean) = (place(cell.low), place(cell.high), place(cell.mean));
    let letter = |i: usize| match i {
        i if i == mean => '●',
        i if (from..=to).contains(&i) => '━',
        _ => ' ',
    };
    (0..=to.max(mean)).map(letter).collect()
}

/// The policy as a band of a chart.
pub(super) fn band(facts: &Facts) -> Delays {
    let intervals = facts.cells.iter().map(|cell| (cell.low, cell.high, cell.mean)).collect();
    Delays { name: facts.named.name.clone(), intervals, retries: facts.retries }
}
