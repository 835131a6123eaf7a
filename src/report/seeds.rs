//! What the repetitions of a policy say together, for files: a line for each figure, and a line for each thing that happens or does not.
//!
//! Every repetition has a seed of its own. A figure is told by its median, the interval of that, and the spread over seeds; a thing that
//! happens or does not by the share of seeds in which it did, never by a mean. Interrupted repetitions are left out.

use serde_json::{Map, Value, json};

use super::across::{Runs, Share, Spread, policies};
use crate::metrics::{METRICS, OCCURRENCES};
use crate::report::Comparison;

/// The columns of the table: what is told of a figure, then of an occurrence.
pub(super) const COLUMNS: [&str; 15] = [
    "policy",
    "metric",
    "n",
    "missing",
    "least",
    "p5",
    "median_low",
    "median",
    "median_high",
    "p95",
    "most",
    "hits",
    "share_low",
    "share",
    "share_high",
];

/// Whether there is anything to tell.
pub(super) fn apply(comparison: &Comparison) -> bool {
    policies(comparison).iter().any(Runs::is_repeated)
}

/// The rows of the table.
pub(super) fn rows(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for runs in policies(comparison) {
        for (name, spread) in figures(&runs) {
            let (low, high) = spread.interval.unwrap_or_default();
            let values = [spread.least, spread.p5, low, spread.median, high, spread.p95, spread.most];
            let mut row = vec![runs.policy.to_owned(), name.to_owned(), spread.n.to_string(), spread.missing.to_string()];
            row.extend(values.map(cell));
            row.extend([const { String::new() }; 4]);
            rows.push(row);
        }
        for (name, share) in occurrences(&runs) {
            let (low, high) = share.interval();
            let mut row = vec![runs.policy.to_owned(), name.to_owned(), share.of.to_string()];
            row.extend([const { String::new() }; 8]);
            row.push(share.hits.to_string());
            row.extend([low, share.value(), high].map(|share| cell(Some(share))));
            rows.push(row);
        }
    }
    rows
}

/// The same as a document: an entry per policy.
pub(super) fn document(comparison: &Comparison) -> Value {
    let entry = |runs: &Runs<'_>| {
        let metrics: Map<String, Value> = figures(runs).map(|(name, spread)| (name.to_owned(), figure(&spread))).collect();
        let share = |share: &Share| {
            let (low, high) = share.interval();
            json!({"n": share.of, "hits": share.hits, "share": rounded(share.value()), "low": rounded(low), "high": rounded(high)})
        };
        let shares: Map<String, Value> = occurrences(runs).map(|(name, told)| (name.to_owned(), share(&told))).collect();
        json!({"policy": runs.policy, "metrics": metrics, "shares": shares})
    };
    policies(comparison).iter().map(entry).collect()
}

fn figure(spread: &Spread) -> Value {
    let (low, high) = spread.interval.unwrap_or_default();
    json!({
        "n": spread.n,
        "missing": spread.missing,
        "least": spread.least,
        "p5": spread.p5,
        "median": spread.median,
        "median_low": low,
        "median_high": high,
        "p95": spread.p95,
        "most": spread.most,
    })
}

fn figures(runs: &Runs<'_>) -> impl Iterator<Item = (&'static str, Spread)> {
    METRICS.iter().map(|metric| (metric.name, runs.spread(|summary| metric.value(summary))))
}

fn occurrences(runs: &Runs<'_>) -> impl Iterator<Item = (&'static str, Share)> {
    OCCURRENCES.iter().filter_map(|occurrence| Some((occurrence.name, runs.share(occurrence)?)))
}

fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| rounded(value).to_string())
}
