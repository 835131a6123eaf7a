//! `simq compare A B`: two runs beside each other, from what they left: reports or baselines.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use super::exit::Code;
use super::gate::runner;
use super::say::say;
use super::{Exit, args, baseline};
use crate::check::{self, Change, PolicyRuns, Rule, Runs, Time, Verdict, change, factor, mann_whitney, median, show};
use crate::metrics::{METRICS, Metric};
use crate::report::{self, Overlay};

/// The figures of a table, unless others are asked for.
const SHOWN: [&str; 12] = [
    "lost",
    "requests",
    "amplification",
    "stampede_peak",
    "recovery_peak",
    "completion_p50_s",
    "completion_p99_s",
    "makespan_s",
    "time_to_recover_s",
    "latency_ms_p99",
    "claim_ms_p50",
    "settle_ms_p50",
];
/// What is called alike where nothing was said.
const TOLERANCE: f64 = 0.05;

/// Runs from a file, and where its report is.
pub(super) struct Loaded {
    pub(super) runs: Runs,
    report: Option<PathBuf>,
}

pub(super) fn main(args: &args::CompareRuns) -> anyhow::Result<Exit> {
    let metrics = metrics(&args.metrics)?;
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let rows = rows(&a.runs, &b.runs, &metrics);
    let mut out = anstream::stdout();
    if args.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        writeln!(out, "{:#}", json!({ "a": args.a, "b": args.b, "cautions": cautions(&a.runs, &b.runs), "rows": rows }))?;
    } else {
        table(&mut out, &rows, &args.a, &args.b)?;
        for caution in cautions(&a.runs, &b.runs) {
            writeln!(out, "note: {caution}")?;
        }
    }
    if let Some(png) = &args.png {
        draw(&a, &b, args, png)?;
        say(&format!("chart: {}", png.display()));
    }
    Ok(Exit::Done)
}

fn usage(message: String) -> anyhow::Error {
    anyhow!(Code(Exit::Usage)).context(message)
}

fn metrics(names: &[String]) -> anyhow::Result<Vec<&'static Metric>> {
    if names.is_empty() {
        return Ok(SHOWN.iter().filter_map(|name| Metric::named(name)).collect());
    }
    let found = |name: &String| {
        Metric::named(name).ok_or_else(|| usage(format!("there is no figure `{name}`: summary.csv has a column for each")))
    };
    names.iter().map(found).collect()
}

/// Reads a report's folder, its `summary.json`, or a baseline.
pub(super) fn load(path: &Path) -> anyhow::Result<Loaded> {
    let file = if path.is_dir() { path.join("summary.json") } else { path.to_owned() };
    let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if path.is_dir() => usage(format!("`{}` is no report: it has no summary.json", path.display())),
        io::ErrorKind::NotFound => usage(format!("there is no file `{}`", file.display())),
        _ => usage(format!("`{}` can't be read: {error}", file.display())),
    })?;
    if text.contains("\"simq_baseline\"") {
        return Ok(Loaded { runs: baseline::read(&file)?, report: None });
    }
    let document: Value =
        serde_json::from_str(&text).map_err(|error| usage(format!("`{}` is not JSON: {error}", file.display())))?;
    let runs = from_summary(&document)
        .ok_or_else(|| usage(format!("`{}` is neither a report's summary nor a baseline", file.display())))?;
    Ok(Loaded { runs, report: file.parent().map(Path::to_owned) })
}

/// The runs of a `summary.json`; `None` if it is none.
fn from_summary(document: &Value) -> Option<Runs> {
    if document.get("schema_version")?.as_u64()? != 1 {
        return None;
    }
    let source = document.get("scenario_source")?.as_str()?;
    let conditions = document.get("conditions")?.as_object()?;
    let conditions = conditions.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    let (time, machine) = runner::circumstances(&conditions);
    let mut runs = Runs {
        scenario: document.get("scenario")?.get("name")?.as_str()?.to_owned(),
        // A trace is not part of a report.
        fingerprint: crate::scenario::fingerprint(source, &|_| Err(io::ErrorKind::NotFound.into())).unwrap_or_default(),
        time,
        simq: document.get("simq")?.as_str()?.to_owned(),
        machine,
        policies: Vec::new(),
        engine: Default::default(),
        unfit: Vec::new(),
    };
    if document.get("partial")?.as_bool()? {
        runs.unfit.push("the run was interrupted".to_owned());
    }
    for run in document.get("runs")?.as_array()? {
        let name = run.get("policy")?.as_str()?;
        let figures = run.get("summary")?;
        if figures.get("limit").and_then(Value::as_str) == Some("harness") {
            runs.unfit.push(format!("the harness was the limit of `{name}`"));
        }
        let place = runs.policies.iter().position(|policy| policy.name == name).unwrap_or_else(|| {
            runs.policies.push(PolicyRuns { name: name.to_owned(), ..PolicyRuns::default() });
            runs.policies.len() - 1
        });
        let policy = &mut runs.policies[place];
        policy.seeds.push(run.get("seed")?.as_u64()?);
        for metric in METRICS {
            let value = figures.get(metric.name).and_then(Value::as_f64);
            policy.figures.entry(metric.name.to_owned()).or_default().push(value);
        }
    }
    Some(runs)
}

/// A line of the table.
struct Row {
    policy: String,
    metric: &'static Metric,
    a: Option<f64>,
    b: Option<f64>,
    /// Where there are repetitions enough for one.
    change: Option<Change>,
}

impl Row {
    fn json(&self) -> Value {
        let number = |value: Option<f64>| value.filter(|value| value.is_finite());
        json!({
            "policy": self.policy,
            "metric": self.metric.name,
            "a": number(self.a),
            "b": number(self.b),
            "verdict": self.change.map(|change| change.verdict),
            "p": self.change.map(|change| change.p),
        })
    }
}

fn rows(a: &Runs, b: &Runs, metrics: &[&'static Metric]) -> Vec<Row> {
    let mut names: Vec<&String> = a.policies.iter().map(|policy| &policy.name).collect();
    names.extend(b.policies.iter().map(|policy| &policy.name).filter(|name| a.policy(name).is_none()));
    let rule = Rule::default();
    let enough = a.repetitions().min(b.repetitions()) >= rule.least && a.fingerprint == b.fingerprint;
    let values = |runs: &Runs, name: &str, metric: &Metric| runs.policy(name).and_then(|policy| policy.values(metric.name));
    let mut rows: Vec<Row> = Vec::new();
    let mut compared: Vec<(usize, Vec<f64>, Vec<f64>)> = Vec::new();
    for name in names {
        for metric in metrics {
            let (of_a, of_b) = (values(a, name, metric), values(b, name, metric));
            if let (Some(old), Some(new), true) = (&of_a, &of_b, enough) {
                compared.push((rows.len(), old.clone(), new.clone()));
            }
            let [a, b] = [of_a, of_b].map(|values| values.map(|values| median(&values)));
            rows.push(Row { policy: name.clone(), metric, a, b, change: None });
        }
    }
    let p = check::holm(&compared.iter().map(|(_, old, new)| mann_whitney(new, old)).collect::<Vec<f64>>());
    for ((row, old, new), p) in compared.iter().zip(p) {
        let row = &mut rows[*row];
        row.change = Some(change(new, old, (p, compared.len()), (row.metric.better, TOLERANCE), rule));
    }
    rows
}

fn table(out: &mut impl Write, rows: &[Row], a: &Path, b: &Path) -> io::Result<()> {
    let shown = |metric: &Metric, value: Option<f64>| value.map_or("–".to_owned(), |value| show(metric.unit, value));
    let wide = rows.iter().map(|row| row.policy.chars().count()).max().unwrap_or(0).max(6);
    writeln!(out, "A: {}\nB: {}\n", a.display(), b.display())?;
    writeln!(out, "{:<wide$}  {:<18} {:>12} {:>12} {:>12}  verdict", "policy", "figure", "A", "B", "B to A")?;
    for row in rows {
        let ratio = match (row.a, row.b) {
            (Some(a), Some(b)) if a == b => "=".to_owned(),
            (Some(a), Some(b)) if a.is_finite() && b.is_finite() => factor(b / a),
            _ => "–".to_owned(),
        };
        let verdict = match row.change.map(|change| change.verdict) {
            None => String::new(),
            Some(Verdict::Inconclusive { more: Some(more) }) => format!("inconclusive: {more} more repetitions"),
            Some(verdict) => verdict.to_string(),
        };
        let (left, right) = (shown(row.metric, row.a), shown(row.metric, row.b));
        writeln!(out, "{:<wide$}  {:<18} {left:>12} {right:>12} {ratio:>12}  {verdict}", row.policy, row.metric.name)?;
    }
    Ok(())
}

/// What a reader must know before believing a difference.
fn cautions(a: &Runs, b: &Runs) -> Vec<String> {
    let mut said = Vec::new();
    if a.fingerprint != b.fingerprint || a.fingerprint.is_empty() {
        said.push(
            "the two are not of the same scenario file, as far as can be told: a difference may be the scenario's".to_owned(),
        );
    }
    if a.time != b.time {
        said.push("one is in virtual time and one in real time".to_owned());
    }
    for (name, runs) in [("A", a), ("B", b)] {
        said.extend(runs.unfit.iter().map(|why| format!("{name} is not to be trusted: {why}")));
    }
    if a.time == Time::Real && b.time == Time::Real {
        for (key, was) in &a.machine {
            if let Some(is) = b.machine.get(key).filter(|is| *is != was) {
                said.push(format!("`{key}` differs: {was} and {is}"));
            }
        }
        let least = a.repetitions().min(b.repetitions());
        if least < Rule::default().least {
            said.push(format!(
                "with {least} repetitions of each nothing can be said of noise: give `--repetitions 10` to `simq run`"
            ));
        }
    }
    said
}

fn draw(a: &Loaded, b: &Loaded, args: &args::CompareRuns, png: &Path) -> anyhow::Result<()> {
    let series = |loaded: &Loaded, path: &Path| -> anyhow::Result<String> {
        let Some(report) = &loaded.report else {
            return Err(usage(format!(
                "`{}` is a baseline, and has no series to draw: name the folder of a report",
                path.display()
            )));
        };
        let file = report.join("timeseries.csv");
        fs::read_to_string(&file).with_context(|| format!("`{}` can't be read", file.display())).context(Code(Exit::Usage))
    };
    let (of_a, of_b) = (series(a, &args.a)?, series(b, &args.b)?);
    let names = [format!("A: {}", args.a.display()), format!("B: {}", args.b.display())];
    let overlay = Overlay::of(names, [&of_a, &of_b]).map_err(usage)?;
    report::save_overlay(&overlay, png).context(Code(Exit::Environment))
}
