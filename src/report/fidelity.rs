//! The real world and virtual time laid over each other: does the one predict the other?
//!
//! A figure's error compares medians over the same seeds, so that luck is not part of it. The interval is where 95 % of all seeds
//! of the virtual runs fall: what is predicted for one real run, the real world's own noise left out. It covers the real median or does
//! not.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use super::across::{Runs, policies};
use super::figure;
use super::folder::Draft;
use super::{Comparison, Error, Run};
use crate::metrics::{METRICS, Metric};

/// The figures that are compared, and how far a prediction may be off, as a share of the real median; `None` where it is only shown.
const COMPARED: [(&str, Option<f64>); 11] = [
    ("lost", None),
    ("requests", Some(0.05)),
    ("amplification", Some(0.05)),
    ("completion_p50_s", Some(0.10)),
    ("completion_p99_s", Some(0.10)),
    ("makespan_s", Some(0.10)),
    ("time_to_recover_s", Some(0.10)),
    ("recovery_peak", Some(0.15)),
    ("stampede_peak", None),
    ("retry_peak", None),
    ("schedule_lag_p50_ms", None),
];

/// Both worlds' runs of one scenario.
#[derive(Clone, Debug)]
pub struct Fidelity {
    /// For real.
    pub real: Comparison,
    /// In virtual time, the seeds of the real runs first.
    pub predicted: Comparison,
}

/// One figure of one policy in both worlds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The policy.
    pub policy: String,
    /// The figure's name in the catalogue.
    pub metric: &'static str,
    /// The median of the real runs; `None` where at least half have no value.
    pub real: Option<f64>,
    /// The least and the greatest of the real runs.
    pub real_range: [Option<f64>; 2],
    /// The median of the virtual runs with the same seeds.
    pub predicted: Option<f64>,
    /// Where 95 % of all virtual runs fall; `None` at the upper end: beyond all numbers.
    pub interval: [Option<f64>; 2],
    /// `predicted / real - 1`; `None` where it can't be said.
    pub error: Option<f64>,
    /// How far it may be off.
    pub allowed: Option<f64>,
    /// Whether the interval covers the real median.
    pub covered: bool,
}

impl Row {
    /// Whether the prediction is as near as it should be; `None` where nothing is asked.
    pub fn holds(&self) -> Option<bool> {
        let allowed = self.allowed?;
        Some(match (self.real, self.predicted) {
            (None, None) => true,
            (Some(real), Some(predicted)) if real == predicted => true,
            _ => self.error.is_some_and(|error| error.abs() <= allowed),
        })
    }
}

/// Every figure that is compared, policy by policy.
pub fn rows(fidelity: &Fidelity) -> Vec<Row> {
    let predicted = policies(&fidelity.predicted);
    let mut rows = Vec::new();
    for real in policies(&fidelity.real) {
        let Some(predicted) = predicted.iter().find(|runs| runs.policy == real.policy) else { continue };
        let compared = COMPARED.iter().filter_map(|(name, allowed)| Some((Metric::named(name)?, *allowed)));
        rows.extend(compared.map(|(metric, allowed)| row(&real, predicted, metric, allowed)));
    }
    rows
}

fn row(real: &Runs<'_>, predicted: &Runs<'_>, metric: &'static Metric, allowed: Option<f64>) -> Row {
    let spread = real.spread(|summary| metric.value(summary));
    let seeds: Vec<u64> = real.runs.iter().map(|run| run.seed).collect();
    let same = Runs { runs: predicted.runs.iter().copied().filter(|run| seeds.contains(&run.seed)).collect(), ..*predicted };
    let median = same.spread(|summary| metric.value(summary)).median;
    let interval = interval(predicted, metric);
    let value = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
    let covered = (value(interval[0])..=value(interval[1])).contains(&value(spread.median));
    let error = spread.median.zip(median).filter(|(real, _)| *real != 0.0).map(|(real, predicted)| predicted / real - 1.0);
    Row {
        policy: real.policy.to_owned(),
        metric: metric.name,
        real: spread.median,
        real_range: [spread.least, spread.most],
        predicted: median,
        interval,
        error,
        allowed,
        covered,
    }
}

/// The 2.5th and the 97.5th percentile over all seeds; what has no value is beyond all numbers.
fn interval(runs: &Runs<'_>, metric: &Metric) -> [Option<f64>; 2] {
    let value = |run: &&Run| metric.value(&run.summary).map_or(f64::INFINITY, |value| value.as_f64());
    let mut values: Vec<f64> = runs.runs.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len().max(1));
        values.get(rank - 1).copied().filter(|value| value.is_finite())
    };
    [at(0.025), at(0.975)]
}

/// The rows as a table in Markdown, with a sentence on each side of it.
pub fn markdown(fidelity: &Fidelity) -> String {
    let rows = rows(fidelity);
    let runs = |comparison: &Comparison| comparison.scenario.repetitions;
    let mut text = format!(
        "# {}: the real world and virtual time\n\n{} real runs of each policy, {} in virtual time. Errors compare medians over the same \
         seeds; the interval is where 95 % of all seeds fall.\n\n\
         | policy | figure | real [least–most] | predicted [95 %] | error | asked | |\n|---|---|---|---|---|---|---|\n",
        fidelity.real.scenario.name,
        runs(&fidelity.real),
        runs(&fidelity.predicted),
    );
    for row in &rows {
        text += &line(row);
    }
    let asked: Vec<bool> = rows.iter().filter_map(Row::holds).collect();
    let (held, covered) = (asked.iter().filter(|holds| **holds).count(), rows.iter().filter(|row| row.covered).count());
    text += &format!(
        "\n{held} of {} figures are as near as asked; the intervals cover {covered} of {} real medians.\n\n",
        asked.len(),
        rows.len()
    );
    for (what, comparison) in [("Real", &fidelity.real), ("Virtual", &fidelity.predicted)] {
        text += &format!("## {what}\n\n");
        for (name, value) in &comparison.conditions.0 {
            text += &format!("- {name}: {value}\n");
        }
        for warning in &comparison.warnings {
            text += &format!("- warning: {warning}\n");
        }
        text += "\n";
    }
    text
}

fn line(row: &Row) -> String {
    let unit = METRICS.iter().find(|metric| metric.name == row.metric).map(|metric| metric.unit);
    let show = |value: Option<f64>| match (value, unit) {
        (Some(value), Some(unit)) => figure::figure(unit, value),
        _ => "never".to_owned(),
    };
    let range = |[low, high]: [Option<f64>; 2]| format!("[{}–{}]", show(low), show(high));
    let verdict = match (row.holds(), row.covered) {
        (Some(false), true) => "off, but within the interval",
        (Some(false), false) => "**off**",
        (Some(true), _) => "",
        (None, true) => "",
        (None, false) => "not covered",
    };
    format!(
        "| {} | {} | {} {} | {} {} | {} | {} | {verdict} |\n",
        row.policy,
        row.metric,
        show(row.real),
        range(row.real_range),
        show(row.predicted),
        range(row.interval),
        row.error.map_or_else(|| "–".to_owned(), |error| format!("{:+.1} %", 100.0 * error)),
        row.allowed.map_or_else(|| "–".to_owned(), |allowed| format!("{:.0} %", 100.0 * allowed)),
    )
}

/// Writes the folder: `fidelity.md`, `fidelity.csv`, `fidelity.json`, and for each policy a chart of the requests and one of the
/// completed jobs, both worlds in each.
///
/// # Errors
/// As [`write`](super::write()).
pub fn write_fidelity(fidelity: &Fidelity, dir: &Path) -> Result<(), Error> {
    let draft = Draft::beside(dir)?;
    let put = |name: &str, text: &[u8]| {
        let path = draft.file(name);
        File::create(&path).and_then(|mut file| file.write_all(text)).map_err(Error::at(&path))
    };
    put("fidelity.md", markdown(fidelity).as_bytes())?;
    let rows = rows(fidelity);
    let json = serde_json::to_vec_pretty(&rows).expect("rows are plain data");
    put("fidelity.json", &json)?;
    csv(&rows, &draft.file("fidelity.csv"))?;
    #[cfg(feature = "plot")]
    for policy in policies(&fidelity.real) {
        let both = both(fidelity, policy.policy);
        for chart in super::chart::CHARTS.iter().filter(|chart| ["requests", "completion"].contains(&chart.slug)) {
            chart.save(&both, &draft.file(&format!("{}-{}.png", chart.slug, policy.policy)))?;
        }
    }
    draft.publish().map(drop)
}

fn csv(rows: &[Row], path: &Path) -> Result<(), Error> {
    let fill = || -> io::Result<()> {
        let mut out = ::csv::Writer::from_writer(BufWriter::new(File::create(path)?));
        out.write_record([
            "policy",
            "metric",
            "real",
            "real_least",
            "real_most",
            "predicted",
            "predicted_p2_5",
            "predicted_p97_5",
            "error",
            "allowed",
            "covered",
        ])?;
        for row in rows {
            let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let [least, most] = row.real_range.map(cell);
            let [low, high] = row.interval.map(cell);
            out.write_record([
                row.policy.clone(),
                row.metric.to_owned(),
                cell(row.real),
                least,
                most,
                cell(row.predicted),
                low,
                high,
                cell(row.error),
                cell(row.allowed),
                row.covered.to_string(),
            ])?;
        }
        out.flush()
    };
    fill().map_err(Error::at(path))
}

/// One policy's first run in each world, as if they were two policies.
#[cfg(feature = "plot")]
fn both(fidelity: &Fidelity, policy: &str) -> Comparison {
    let of = |comparison: &Comparison, world: &str| {
        let run = comparison.runs.iter().find(|run| run.policy == policy && run.repetition == 1).cloned();
        run.map(|run| Run { policy: format!("{policy}, {world}"), ..run })
    };
    let runs = [of(&fidelity.real, "real"), of(&fidelity.predicted, "virtual")].into_iter().flatten().collect();
    let mut scenario = fidelity.real.scenario.clone();
    scenario.policies.clear();
    scenario.repetitions = 1;
    let conditions = fidelity.real.conditions.clone();
    Comparison { scenario, runs, conditions, warnings: vec![], partial: false }
}
