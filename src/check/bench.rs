//! Criterion's own results, judged on medians, since criterion itself exits with 0 on a regression.
//!
//! A bench's samples are the times per iteration in its `sample.json`. Samples of one process follow each other within seconds and are no independent
//! repetitions: the tolerance has to cover what two runs of the same code differ by, and the test alone must not be believed.

use serde::Deserialize;

use super::noisy::{change, sentence};
use super::runs::spread;
use super::stats::{holm, mann_whitney, median};
use super::{Finding, Rule, Tier, Verdict};
use crate::metrics::{Better, Unit};

/// One bench, now and then.
#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    /// Its name, such as `claim/batches of 10`.
    pub name: String,
    /// Nanoseconds per iteration, a value per sample.
    pub new: Vec<f64>,
    /// The same of the baseline; `None` if it has no such bench.
    pub old: Option<Vec<f64>>,
}

/// Why a file is no sample.
#[derive(Debug, thiserror::Error)]
#[error("it is no sample of criterion's ({0}): run `cargo bench` again")]
pub struct Error(String);

#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

/// Nanoseconds per iteration, from the text of a `sample.json`.
///
/// # Errors
/// If it is not one.
pub fn sample(text: &str) -> Result<Vec<f64>, Error> {
    let sample: Sample = serde_json::from_str(text).map_err(|error| Error(error.to_string()))?;
    if sample.iters.len() != sample.times.len() || sample.times.is_empty() || sample.iters.iter().any(|iters| *iters < 1.0) {
        return Err(Error("as many `iters` as `times`, and some, are needed".to_owned()));
    }
    Ok(sample.times.iter().zip(&sample.iters).map(|(time, iters)| time / iters).collect())
}

/// Judges each bench against its baseline.
pub fn benches(benches: &[Bench], tolerance: f64, rule: Rule) -> Vec<Finding> {
    let pairs: Vec<(&Bench, &Vec<f64>)> = benches.iter().filter_map(|bench| Some((bench, bench.old.as_ref()?))).collect();
    let p = holm(&pairs.iter().map(|(bench, old)| mann_whitney(&bench.new, old)).collect::<Vec<f64>>());
    let mut found: Vec<Finding> = benches
        .iter()
        .filter(|bench| bench.old.is_none())
        .map(|bench| {
            let sentence = "the baseline has no such bench: save it anew with `cargo bench -- --save-baseline NAME`".to_owned();
            Finding::about(Tier::Bench, &bench.name, Verdict::Missing, sentence)
        })
        .collect();
    found.extend(pairs.iter().zip(p).map(|((bench, old), p)| {
        let change = change(&bench.new, old, (p, pairs.len()), (Better::Lower, tolerance), rule);
        let millis = |values: &[f64]| values.iter().map(|ns| ns / 1e6).collect::<Vec<f64>>();
        let said = sentence(&change, Unit::Millis, (median(&millis(old)), median(&millis(&bench.new))), tolerance);
        Finding {
            unit: Unit::Millis,
            new: spread(&millis(&bench.new)),
            old: Some(median(&millis(old))),
            ..Finding::about(Tier::Bench, &bench.name, change.verdict, said)
        }
    }));
    found
}
