//! Several policies beside each other.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

use super::facts::{Facts, columns, interval, span};
use super::show::band;
use crate::cli::exit::Code;
use crate::cli::{Exit, args};
use crate::report::{Delays, save_delays};

pub(super) fn main(args: &args::Compare, file: Option<&Path>) -> anyhow::Result<Exit> {
    let named: Vec<super::Named> = args.names.iter().map(|name| super::find(name, file)).collect::<Result<_, _>>()?;
    let most = |facts: &Facts| facts.cells.len() as u32;
    let attempts =
        args.attempts.unwrap_or_else(|| named.iter().map(|named| most(&Facts::of(named.clone(), None))).max().unwrap_or(10));
    let all: Vec<Facts> = named.into_iter().map(|named| Facts::of(named, Some(attempts))).collect();
    if let Some(path) = &args.png {
        let bands: Vec<Delays> = all.iter().map(band).collect();
        save_delays(&bands, path).context(Code(Exit::Environment))?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        let all: Vec<serde_json::Value> = all.iter().map(Facts::json).collect();
        serde_json::to_writer_pretty(&mut out, &all).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Done);
    }
    write!(out, "{}", columns(&rows(&all, attempts)))?;
    if let Some(path) = &args.png {
        writeln!(out, "\nPicture: {}", path.display())?;
    }
    Ok(Exit::Done)
}

fn rows(all: &[Facts], attempts: u32) -> Vec<Vec<String>> {
    let row = |title: String, figure: &dyn Fn(&Facts) -> String| {
        let mut row = vec![title];
        row.extend(all.iter().map(figure));
        row
    };
    let mut rows = vec![
        row(String::new(), &|facts| facts.named.name.clone()),
        row("system".into(), &|facts| format!("{} {}", facts.named.system, facts.named.version)),
        row("retries".into(), &Facts::limit),
        row("total".into(), &Facts::total),
        row("cap".into(), &Facts::cap),
        row("jitter".into(), &|facts| facts.named.policy.jitter.name()),
        row("spread".into(), &|facts| format!("{:.2}", facts.spread)),
        row("budget".into(), &Facts::budget),
        row("Retry-After".into(), &|facts| facts.hint().to_owned()),
        vec![String::new()],
    ];
    for n in 0..attempts as usize {
        rows.push(row(format!("retry {}", n + 1), &|facts| facts.cells.get(n).map_or_else(|| "–".into(), interval)));
    }
    let so_far = |facts: &Facts| span(facts.cells.iter().map(|cell| cell.mean).sum());
    rows.push(row(format!("mean of {attempts}"), &so_far));
    rows
}
