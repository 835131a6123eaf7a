//! The summary for machines: one JSON document with a version, the scenario as it was resolved, and every figure.
//!
//! Durations of the scenario appear as a person writes them (`"2s"`), figures under their names in the catalogue with the
//! unit last (`makespan_s`), and what does not exist is `null`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Error, csv, toll};
use crate::metrics::{self, METRICS};
use crate::report::{Comparison, Run};
use crate::scenario::humanise;

/// Raised when a reader of an older document could misread a newer one.
const SCHEMA_VERSION: u32 = 1;

/// The document. `scenario_source` is the scenario file's text, kept verbatim.
pub fn summary(comparison: &Comparison, scenario_source: &str) -> Value {
    let mut scenario = serde_json::to_value(&comparison.scenario).expect("a scenario is plain data with text keys");
    humanise(&mut scenario);
    json!({
        "schema_version": SCHEMA_VERSION,
        "simq": env!("CARGO_PKG_VERSION"),
        "seed": comparison.scenario.seed,
        "partial": comparison.partial,
        "warnings": comparison.warnings,
        "conditions": comparison.conditions,
        "runs": comparison.runs.iter().map(run).collect::<Vec<Value>>(),
        "scenario": scenario,
        "scenario_source": scenario_source,
    })
}

/// Writes the document.
pub(super) fn write(comparison: &Comparison, scenario_source: &str, path: &Path) -> Result<(), Error> {
    let document = summary(comparison, scenario_source);
    let save = || -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut out, &document)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    save().map_err(Error::at(path))
}

fn run(run: &Run) -> Value {
    let mut figures: Map<String, Value> =
        METRICS.iter().map(|metric| (metric.name.to_owned(), number(metric.value(&run.summary)))).collect();
    figures.insert("limit".to_owned(), csv::limit(run).into());
    figures.insert("limit_evidence".to_owned(), run.summary.limit_evidence.clone().into());
    let mut document = json!({
        "policy": run.policy,
        "repetition": run.repetition,
        "seed": run.seed,
        "partial": run.partial,
        "summary": figures,
    });
    if !run.record.blows.is_empty() {
        document["chaos"] = toll::json(run);
    }
    document
}

fn number(value: Option<metrics::Value>) -> Value {
    match value {
        None => Value::Null,
        Some(metrics::Value::Count(count)) => count.into(),
        Some(metrics::Value::Number(number)) => number.into(),
    }
}
