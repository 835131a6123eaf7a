//! All of them, in groups.

use std::io::{self, Write};
use std::path::Path;

use super::facts::{Facts, columns};
use crate::cli::Exit;

pub(super) fn main(file: Option<&Path>, json: bool) -> anyhow::Result<Exit> {
    let facts: Vec<Facts> = super::all(file)?.into_iter().map(|named| Facts::of(named, None)).collect();
    let mut out = io::stdout().lock();
    if json {
        let all: Vec<serde_json::Value> = facts.iter().map(Facts::json).collect();
        serde_json::to_writer_pretty(&mut out, &all).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Done);
    }
    let mut rows = vec![["", "retries", "total", "cap", "jitter", "spread", "budget", "Retry-After"].map(str::to_owned).to_vec()];
    let mut group = String::new();
    for facts in &facts {
        if facts.named.group != group {
            group.clone_from(&facts.named.group);
            rows.push(vec![String::new()]);
            rows.push(vec![group.clone()]);
        }
        rows.push(vec![
            format!("  {}", facts.named.name),
            facts.limit(),
            facts.total(),
            facts.cap(),
            facts.named.policy.jitter.name(),
            format!("{:.2}", facts.spread),
            facts.budget(),
            facts.hint().to_owned(),
        ]);
    }
    write!(out, "{}", columns(&rows))?;
    writeln!(out)?;
    writeln!(
        out,
        "{} policies. spread: the widest interval of the first ten retries over its middle, from 0 (a herd stays together) to 2.",
        facts.len()
    )?;
    writeln!(out, "`simq policies show NAME` has each delay; in a scenario: [policy.NAME] with `preset = \"NAME\"`.")?;
    Ok(Exit::Done)
}
