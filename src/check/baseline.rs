//! A baseline: runs in a file that is small enough to be committed, and that a person can read a change of.
//!
//! JSON, a line per figure with a value for each repetition. It carries its version, what scenario it is of and where it was made, and a digest of
//! all that: a file that was cut short, edited or merged by hand is refused, and never read as far as it goes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::runs::{PolicyRuns, Runs, Time};
use crate::scenario::digest;

/// Raised when a file that an older simq wrote can no longer be compared.
pub const SCHEMA_VERSION: u64 = 1;

/// Why a file is no baseline to compare with. Each says what to do; none is ever a pass.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It ends too early.
    #[error("the baseline ends in the middle, at line {line}: it was cut short; restore it, or write it anew with --update")]
    Truncated {
        /// Where it ends.
        line: usize,
    },
    /// It is not JSON.
    #[error(
        "the baseline is not JSON, from line {line} on: after a merge, take one side or the other whole, or write it anew with --update"
    )]
    Syntax {
        /// Where it stops to be.
        line: usize,
    },
    /// It is JSON, and something else.
    #[error("this is not a baseline: it has no `simq_baseline` with a number; name one that `simq baseline save` wrote")]
    Alien,
    /// An older simq wrote it.
    #[error("the baseline is of version {found}, and this simq compares version {SCHEMA_VERSION}: write it anew with --update")]
    Older {
        /// Its version.
        found: u64,
    },
    /// A newer simq wrote it.
    #[error(
        "the baseline is of version {found}, and this simq knows none beyond {SCHEMA_VERSION}: use the simq that wrote it, or a newer one"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
    /// Its values are not those that were written.
    #[error("the baseline was changed by hand: its contents do not match its digest; restore it, or write it anew with --update")]
    Edited,
    /// It has the right digest and the wrong shape.
    #[error("the baseline can't be read ({0}): write it anew with --update")]
    Shape(String),
    /// It is of another scenario.
    #[error(
        "the baseline is of scenario `{theirs}`, whose file said something else than `{ours}` does now: gate that one, or write the baseline anew with --update"
    )]
    OtherScenario {
        /// The scenario that is gated.
        ours: String,
        /// The scenario that it is of.
        theirs: String,
    },
    /// It was made in the other time.
    #[error("the baseline was made in {theirs} time, and these runs are in {ours} time: gate with --time {theirs}")]
    OtherTime {
        /// The time of the runs.
        ours: &'static str,
        /// The time of the baseline.
        theirs: &'static str,
    },
}

/// The file's shape.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "simq_baseline")]
    _version: u64,
    simq: String,
    scenario: String,
    fingerprint: String,
    time: Time,
    machine: BTreeMap<String, String>,
    policies: Vec<Policy>,
    engine: BTreeMap<String, Vec<f64>>,
    #[serde(rename = "digest")]
    _digest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    name: String,
    seeds: Vec<u64>,
    figures: BTreeMap<String, Vec<Option<f64>>>,
}

/// The file's text: a line per figure, so that a change of one is a changed line.
pub fn write(runs: &Runs) -> String {
    let head = json!({
        "simq": runs.simq,
        "scenario": runs.scenario,
        "fingerprint": runs.fingerprint,
        "time": runs.time,
    });
    let line = |value: &Value| value.to_string();
    let mut text = format!("{{\n  \"simq_baseline\": {SCHEMA_VERSION}");
    for key in ["simq", "scenario", "fingerprint", "time"] {
        let _ = write!(text, ",\n  \"{key}\": {}", line(&head[key]));
    }
    let entries = |text: &mut String, indent: &str, entries: Vec<(&String, Value)>| {
        for (i, (key, value)) in entries.iter().enumerate() {
            let comma = if i + 1 < entries.len() { "," } else { "" };
            let _ = write!(text, "\n{indent}{}: {}{comma}", json!(key), line(value));
        }
    };
    text += ",\n  \"machine\": {";
    entries(&mut text, "    ", runs.machine.iter().map(|(key, value)| (key, json!(value))).collect());
    text += "\n  },\n  \"policies\": [";
    for (i, policy) in runs.policies.iter().enumerate() {
        let _ = write!(text, "\n    {{\n      \"name\": {},", json!(policy.name));
        let _ = write!(text, "\n      \"seeds\": {},\n      \"figures\": {{", json!(policy.seeds));
        entries(&mut text, "        ", policy.figures.iter().map(|(key, values)| (key, numbers(values))).collect());
        text += if i + 1 < runs.policies.len() { "\n      }\n    }," } else { "\n      }\n    }" };
    }
    text += "\n  ],\n  \"engine\": {";
    let rounded = |values: &Vec<f64>| json!(values.iter().map(|value| (value * 1e4).round() / 1e4).collect::<Vec<f64>>());
    entries(&mut text, "    ", runs.engine.iter().map(|(key, values)| (key, rounded(values))).collect());
    text += "\n  }";
    let own = serde_json::from_str(&format!("{text}\n}}")).map(|value| digest_of(&value)).unwrap_or_default();
    text + &format!(",\n  \"digest\": \"{own}\"\n}}\n")
}

/// Counts without a point, and `null` for what there is not.
fn numbers(values: &[Option<f64>]) -> Value {
    let number = |value: &Option<f64>| match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => json!(*value as i64),
        Some(value) => json!(value),
        None => Value::Null,
    };
    Value::Array(values.iter().map(number).collect())
}

/// The digest of all but the digest, whatever its spacing and the order of its keys.
fn digest_of(file: &Value) -> String {
    digest(&canonical(file))
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().filter(|(key, _)| *key != "digest").collect();
            entries.sort_by_key(|(key, _)| *key);
            let each: Vec<String> = entries.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value))).collect();
            format!("{{{}}}", each.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// Reads a baseline.
///
/// # Errors
/// Whatever keeps it from being one: see [`Error`].
pub fn parse(text: &str) -> Result<Runs, Error> {
    let value: Value = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => Error::Truncated { line: error.line() },
        false => Error::Syntax { line: error.line() },
    })?;
    let version = value.get("simq_baseline").and_then(Value::as_u64).ok_or(Error::Alien)?;
    if version < SCHEMA_VERSION {
        return Err(Error::Older { found: version });
    }
    if version > SCHEMA_VERSION {
        return Err(Error::Newer { found: version });
    }
    if value.get("digest").and_then(Value::as_str) != Some(digest_of(&value).as_str()) {
        return Err(Error::Edited);
    }
    let file: File = serde_json::from_value(value).map_err(|error| Error::Shape(error.to_string()))?;
    let mut policies = Vec::new();
    for policy in file.policies {
        if let Some((name, _)) = policy.figures.iter().find(|(_, values)| values.len() != policy.seeds.len()) {
            return Err(Error::Shape(format!("`{name}` of `{}` has not as many values as there are seeds", policy.name)));
        }
        policies.push(PolicyRuns { name: policy.name, seeds: policy.seeds, figures: policy.figures });
    }
    Ok(Runs {
        scenario: file.scenario,
        fingerprint: file.fingerprint,
        time: file.time,
        simq: file.simq,
        machine: file.machine,
        policies,
        engine: file.engine,
        unfit: Vec::new(),
    })
}

impl Runs {
    /// Checks that a baseline is of the same scenario and the same time as runs that are to be made.
    ///
    /// # Errors
    /// [`Error::OtherScenario`], [`Error::OtherTime`].
    pub fn is_for(&self, scenario: &str, fingerprint: &str, time: Time) -> Result<(), Error> {
        let word = |time| if time == Time::Virtual { "virtual" } else { "real" };
        if self.fingerprint != fingerprint {
            return Err(Error::OtherScenario { ours: scenario.to_owned(), theirs: self.scenario.clone() });
        }
        if self.time != time {
            return Err(Error::OtherTime { ours: word(time), theirs: word(self.time) });
        }
        Ok(())
    }
}
