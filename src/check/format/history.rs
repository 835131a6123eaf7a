//! For services that keep a history of figures: Bencher, and github-action-benchmark.
//!
//! Sources: Bencher Metric Format, <https://bencher.dev/docs/reference/bencher-metric-format>; the README of
//! github-action-benchmark, "custom" tools.

use serde_json::{Map, Value, json};

use crate::check::{Figure, Judgement};
use crate::metrics::Unit;

/// Bencher Metric Format: a benchmark per policy, a measure per figure, the median with the least and the greatest of the repetitions.
pub fn bmf(judgement: &Judgement) -> Value {
    let mut benchmarks = Map::new();
    for figure in &judgement.figures {
        let name = format!("{}/{}", judgement.name, figure.policy);
        let measures = benchmarks.entry(name).or_insert_with(|| json!({}));
        let [least, middle, most] = figure.spread;
        measures[&figure.metric] = json!({ "value": middle, "lower_value": least, "upper_value": most });
    }
    Value::Object(benchmarks)
}

/// What github-action-benchmark reads as `customSmallerIsBetter`: only the figures of which less is better, since one file has one direction.
pub fn benchmark_action(judgement: &Judgement) -> Value {
    let lower = judgement.figures.iter().filter(|figure| figure.higher_is_better == Some(false));
    lower.map(|figure| entry(judgement, figure)).collect()
}

fn entry(judgement: &Judgement, figure: &Figure) -> Value {
    let [least, middle, most] = figure.spread;
    json!({
        "name": format!("{}/{}/{}", judgement.name, figure.policy, figure.metric),
        "unit": word(figure.unit),
        "value": middle,
        "range": format!("{least} to {most}"),
    })
}

fn word(unit: Unit) -> &'static str {
    match unit {
        Unit::Jobs => "jobs",
        Unit::Calls => "calls",
        Unit::Statements => "statements",
        Unit::Ratio => "ratio",
        Unit::Share => "share",
        Unit::Seconds => "s",
        Unit::Millis => "ms",
    }
}
