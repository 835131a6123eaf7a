//! The summary for machines: one JSON document with a version, the scenario as it was resolved, and every figure.
//!
//! Durations of the scenario appear as a person writes them (`"2s"`), figures under their names in the catalogue with the
//! unit last (`makespan_s`), and what does not exist is `null`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Error, csv};
use crate::metrics::{self, METRICS};
use crate::report::{Comparison, Run};
use crate::time::show;

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
    json!({
        "policy": run.policy,
        "repetition": run.repetition,
        "seed": run.seed,
        "partial": run.partial,
        "summary": figures,
    })
}

fn number(value: Option<metrics::Value>) -> Value {
    match value {
        None => Value::Null,
        Some(metrics::Value::Count(count)) => count.into(),
        Some(metrics::Value::Number(number)) => number.into(),
    }
}

/// Turns serde's `{secs, nanos}` into `"2s"`, and a window's nanoseconds likewise, wherever they are.
pub fn humanise(value: &mut Value) {
    match value {
        Value::Object(map) => match duration(map).or_else(|| window(map)) {
            Some(text) => *value = text,
            None => map.values_mut().for_each(humanise),
        },
        Value::Array(items) => items.iter_mut().for_each(humanise),
        _ => {}
    }
}

fn duration(map: &Map<String, Value>) -> Option<Value> {
    let (secs, nanos) = (map.get("secs")?.as_u64()?, map.get("nanos")?.as_u64()?);
    let whole = map.len() == 2;
    whole.then(|| show(Duration::new(secs, nanos as u32)).to_string().into())
}

fn window(map: &Map<String, Value>) -> Option<Value> {
    let text = |key: &str| Some(show(Duration::from_nanos(map.get(key)?.as_u64()?)).to_string());
    let (from, until) = (text("from")?, text("until")?);
    (map.len() == 2).then(|| json!({ "from": from, "until": until }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_windows_read_as_people_write_them() {
        let mut value = json!({
            "latency": {"kind": "constant", "value": {"secs": 0, "nanos": 36_000_000}},
            "outages": [{"window": {"from": 1_000_000_000_u64, "until": 7_500_000_000_u64}, "mode": "refuse"}],
            "cap": null,
            "other": {"secs": 1, "nanos": 2, "more": 3},
        });
        humanise(&mut value);
        assert_eq!(
            value,
            json!({
                "latency": {"kind": "constant", "value": "36ms"},
                "outages": [{"window": {"from": "1s", "until": "7s 500ms"}, "mode": "refuse"}],
                "cap": null,
                "other": {"secs": 1, "nanos": 2, "more": 3},
            })
        );
    }
}
