//! The comparison as an aligned table: a row per policy, lost jobs before anything else.
//!
//! The best value of a column is bold, among policies that lost nothing only: one that loses jobs is never the best of
//! anything. With several repetitions a cell holds the median and, where it moved, the range.

use super::across::{Runs, Spread, policies};
use super::figure;
use crate::metrics::{Better, Metric, Unit};
use crate::report::Comparison;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";
const GAP: usize = 2;
/// A policy's name is cut only where the table would not fit even without its other columns.
const SHORTEST_NAME: usize = 10;

/// A column: what it is called here, which figure it shows, and how soon it may go where the terminal is narrow.
struct Column {
    header: &'static str,
    metric: &'static str,
    /// The column with the highest rank is left out first; 0 stays.
    rank: u8,
    /// What stands in for a value that does not exist.
    missing: &'static str,
}

const COLUMNS: &[Column] = &[
    Column { header: "lost", metric: "lost", rank: 0, missing: "–" },
    Column { header: "completed", metric: "completed", rank: 0, missing: "–" },
    Column { header: "users failed", metric: "user_failed", rank: 1, missing: "–" },
    Column { header: "given up", metric: "discarded", rank: 6, missing: "–" },
    Column { header: "50 % done", metric: "completion_p50_s", rank: 7, missing: "never" },
    Column { header: "99 % done", metric: "completion_p99_s", rank: 3, missing: "never" },
    Column { header: "all settled", metric: "makespan_s", rank: 5, missing: "never" },
    Column { header: "requests", metric: "requests", rank: 2, missing: "–" },
    Column { header: "repeated", metric: "repeated_calls", rank: 2, missing: "–" },
    Column { header: "per job", metric: "amplification", rank: 6, missing: "–" },
    Column { header: "peak", metric: "stampede_peak", rank: 4, missing: "–" },
    Column { header: "retry peak", metric: "retry_peak", rank: 9, missing: "–" },
    Column { header: "recovery peak", metric: "recovery_peak", rank: 1, missing: "–" },
    Column { header: "recovered in", metric: "time_to_recover_s", rank: 8, missing: "never" },
];

/// How a cell is to be read.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    None,
    Best,
    Bad,
}

/// A column as it will be printed.
struct Printed {
    column: &'static Column,
    cells: Vec<(String, Mark)>,
    width: usize,
}

/// The table, its lines ending in newlines, at most `width` columns wide where the names allow it: on a narrow terminal first
/// the ranges go, then the lesser columns. With `color`, ANSI codes mark lost jobs red and the best values bold.
pub fn table(comparison: &Comparison, color: bool, width: usize) -> String {
    let policies = policies(comparison);
    let longest = policies.iter().map(|runs| runs.policy.chars().count()).max().unwrap_or(0).max("policy".len());
    let outages = !comparison.scenario.spells().is_empty();
    let room = width.saturating_sub(longest);
    let mut columns = printed(&policies, outages, true);
    let ranges = total(&columns) <= room;
    if !ranges {
        columns = printed(&policies, outages, false);
    }
    while total(&columns) > room {
        let Some(least) = columns.iter().map(|printed| printed.column.rank).max().filter(|rank| *rank > 0) else { break };
        columns.retain(|printed| printed.column.rank != least);
    }
    let name_width = longest.min(width.saturating_sub(total(&columns)).max(SHORTEST_NAME));
    let mut out = line(pad("policy", name_width, false), columns.iter().map(|p| pad(p.column.header, p.width, true)));
    for (row, runs) in policies.iter().enumerate() {
        let cell = |p: &Printed| paint(&pad(&p.cells[row].0, p.width, true), p.cells[row].1, color);
        out += &line(pad(runs.policy, name_width, false), columns.iter().map(cell));
    }
    out + &note(&policies, ranges)
}

fn printed(policies: &[Runs<'_>], outages: bool, ranges: bool) -> Vec<Printed> {
    let malformed = policies.iter().any(|runs| runs.runs.iter().any(|run| run.summary.counts.malformed > 0));
    let chaos = policies.iter().any(|runs| runs.runs.iter().any(|run| !run.record.blows.is_empty()));
    let fits = |column: &&Column| match column.metric {
        "recovery_peak" | "time_to_recover_s" => outages,
        "discarded" => malformed,
        "repeated_calls" => chaos,
        "user_failed" => policies.iter().any(|runs| runs.runs.iter().any(|run| run.summary.users.is_some())),
        _ => true,
    };
    let print = |column: &'static Column| {
        let cells = cells(column, Metric::named(column.metric)?, policies, ranges);
        let width = column_width(column, &cells);
        Some(Printed { column, cells, width })
    };
    COLUMNS.iter().filter(fits).filter_map(print).collect()
}

fn total(columns: &[Printed]) -> usize {
    columns.iter().map(|printed| printed.width + GAP).sum()
}

fn line(name: String, cells: impl Iterator<Item = String>) -> String {
    let gap = " ".repeat(GAP);
    cells.fold(name, |line, cell| line + &gap + &cell).trim_end().to_owned() + "\n"
}

/// What the figures are where there were repetitions.
fn note(policies: &[Runs<'_>], ranges: bool) -> String {
    match policies.iter().map(|runs| runs.runs.len()).max() {
        Some(most @ 2..) if ranges => format!("medians of {most} repetitions [least–most]\n"),
        Some(most @ 2..) => format!("medians of {most} repetitions; each is a row of summary.csv\n"),
        _ => String::new(),
    }
}

fn column_width(column: &Column, cells: &[(String, Mark)]) -> usize {
    cells.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0).max(column.header.chars().count())
}

fn cells(column: &Column, metric: &Metric, policies: &[Runs<'_>], ranges: bool) -> Vec<(String, Mark)> {
    let best = best(metric, policies);
    let cell = |runs: &Runs<'_>| {
        let spread = runs.spread(|summary| metric.value(summary));
        let mark = match metric.name {
            "lost" if runs.loses() => Mark::Bad,
            _ if !runs.loses() && spread.median.is_some() && spread.median == best => Mark::Best,
            _ => Mark::None,
        };
        // A loss in some repetition must not hide behind a median of none.
        (text(column, metric.unit, spread, ranges || metric.name == "lost"), mark)
    };
    policies.iter().map(cell).collect()
}

/// A median and, where it moved, its range; the range leaves the unit out where it is the median's.
fn text(column: &Column, unit: Unit, spread: Spread, ranges: bool) -> String {
    let show = |value: Option<f64>| value.map_or_else(|| column.missing.to_owned(), |value| figure::figure(unit, value));
    let (median, least, most) = (show(spread.median), show(spread.least), show(spread.most));
    if !ranges || least == most {
        return median;
    }
    let behind = |text: &str| text.split_once(' ').map(|(_, unit)| format!(" {unit}"));
    let bare = |text: &str| match behind(&median) {
        Some(unit) => text.strip_suffix(&unit).unwrap_or(text).to_owned(),
        None => text.to_owned(),
    };
    format!("{median} [{}–{}]", bare(&least), bare(&most))
}

/// The best median among policies that lost nothing, where at least two of them differ.
fn best(metric: &Metric, policies: &[Runs<'_>]) -> Option<f64> {
    let medians: Vec<f64> = policies
        .iter()
        .filter(|runs| !runs.loses())
        .map(|runs| runs.spread(|summary| metric.value(summary)).median.unwrap_or(f64::INFINITY))
        .collect();
    let least = medians.iter().copied().min_by(f64::total_cmp)?;
    let most = medians.iter().copied().max_by(f64::total_cmp)?;
    match metric.better {
        _ if least == most => None,
        Better::Lower => Some(least),
        Better::Higher => Some(most),
        Better::Neither => None,
    }
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let length = text.chars().count();
    if length > width {
        return text.chars().take(width.saturating_sub(1)).chain(['…']).collect();
    }
    let space = " ".repeat(width - length);
    if right { space + text } else { text.to_owned() + &space }
}

fn paint(text: &str, mark: Mark, color: bool) -> String {
    match mark {
        Mark::Best if color => format!("{BOLD}{text}{PLAIN}"),
        Mark::Bad if color => format!("{RED}{text}{PLAIN}"),
        _ => text.to_owned(),
    }
}
