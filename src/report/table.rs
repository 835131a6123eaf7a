//! The comparison as an aligned table: a row per policy, lost jobs before anything else.
//!
//! The best value of a column is bold, among policies that lost nothing only: one that loses jobs is never the best of
//! anything. With several repetitions a cell holds the median and, where it moved, the range; from six on the range is the 95 % interval of
//! the median, a second table has the spread, and a value is only bold if its interval is apart from that of the worst.

use super::across::{Runs, Spread, policies};
use super::figure::{self, percent};
use crate::metrics::{Better, Metric, Occurrence, Unit, median_ranks};
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
    /// A figure, or something that happens or does not.
    metric: &'static str,
    /// The column with the highest rank is left out first; 0 stays.
    rank: u8,
    /// What stands in for a value that does not exist.
    missing: &'static str,
}

const COLUMNS: &[Column] = &[
    Column { header: "loses in", metric: "lost_jobs", rank: 0, missing: "–" },
    Column { header: "lost", metric: "lost", rank: 0, missing: "–" },
    Column { header: "collapses in", metric: "collapse", rank: 1, missing: "–" },
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

/// Figures of which the second table shows how they differ from seed to seed.
const SPREAD: [&str; 7] =
    ["completion_p50_s", "completion_p99_s", "makespan_s", "stampede_peak", "retry_peak", "recovery_peak", "time_to_recover_s"];

/// Columns up to this rank are worth more than the intervals of the others.
const WORTH: u8 = 4;

/// What a cell says beside the median.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    /// Nothing.
    Median,
    /// The least and the greatest value.
    Range,
    /// The interval of the median.
    Interval,
    /// Not the median, but what lies between the 5th and the 95th percentile.
    Spread,
}

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
/// the ranges go, then the lesser columns; intervals stay for as long as the greater columns have room. With `color`, ANSI codes mark
/// lost jobs red and the best values bold.
pub fn table(comparison: &Comparison, color: bool, width: usize) -> String {
    let policies = policies(comparison);
    let outages = !comparison.scenario.spells().is_empty();
    let longest = policies.iter().map(|runs| runs.policy.chars().count()).max().unwrap_or(0).max("policy".len());
    let room = width.saturating_sub(longest);
    let repetitions = policies.iter().map(|runs| runs.runs.len()).max().unwrap_or(0);
    let many = median_ranks(repetitions).is_some();
    let fuller = if many { Show::Interval } else { Show::Range };
    let mut columns = printed(&policies, outages, fuller);
    let mut show = fuller;
    if many {
        narrow(&mut columns, room, WORTH);
    }
    if total(&columns) > room {
        show = Show::Median;
        columns = printed(&policies, outages, show);
    }
    narrow(&mut columns, room, 0);
    let mut out = block("policy", &policies, &columns, color, width) + &note(repetitions, show);
    if many {
        let mut columns = printed(&policies, outages, Show::Spread);
        columns.retain(|printed| SPREAD.contains(&printed.column.metric));
        narrow(&mut columns, room, 0);
        out += &format!("\n{}from 5 % to 95 % of the repetitions\n", block("spread", &policies, &columns, color, width));
    }
    out + &records(comparison)
}

/// Leaves the lesser columns out, those above `rank`, until the rest has room.
fn narrow(columns: &mut Vec<Printed>, room: usize, rank: u8) {
    while total(columns) > room {
        let Some(least) = columns.iter().map(|printed| printed.column.rank).max().filter(|least| *least > rank) else { break };
        columns.retain(|printed| printed.column.rank != least);
    }
}

fn block(title: &str, policies: &[Runs<'_>], columns: &[Printed], color: bool, width: usize) -> String {
    let longest = policies.iter().map(|runs| runs.policy.chars().count()).max().unwrap_or(0).max(title.len());
    let name_width = longest.min(width.saturating_sub(total(columns)).max(SHORTEST_NAME));
    let mut out = line(pad(title, name_width, false), columns.iter().map(|p| pad(p.column.header, p.width, true)));
    for (row, runs) in policies.iter().enumerate() {
        let cell = |p: &Printed| paint(&pad(&p.cells[row].0, p.width, true), p.cells[row].1, color);
        out += &line(pad(runs.policy, name_width, false), columns.iter().map(cell));
    }
    out
}

fn printed(policies: &[Runs<'_>], outages: bool, show: Show) -> Vec<Printed> {
    let any = |holds: fn(&Runs<'_>) -> bool| policies.iter().any(holds);
    let fits = |column: &&Column| match column.metric {
        "recovery_peak" | "time_to_recover_s" => outages,
        "discarded" => any(|runs| runs.runs.iter().any(|run| run.summary.counts.malformed > 0)),
        "user_failed" => any(|runs| runs.runs.iter().any(|run| run.summary.users.is_some())),
        "repeated_calls" => any(|runs| runs.runs.iter().any(|run| !run.record.blows.is_empty())),
        "lost_jobs" => any(|runs| runs.is_repeated() && runs.loses()),
        "collapse" => any(|runs| runs.is_repeated() && collapses(runs)),
        _ => true,
    };
    let print = |column: &'static Column| {
        let cells = match Occurrence::named(column.metric) {
            Some(occurrence) => policies.iter().map(|runs| share(column, occurrence, runs, show)).collect(),
            None => cells(column, Metric::named(column.metric)?, policies, show),
        };
        let width = column_width(column, &cells);
        Some(Printed { column, cells, width })
    };
    COLUMNS.iter().filter(fits).filter_map(print).collect()
}

fn collapses(runs: &Runs<'_>) -> bool {
    Occurrence::named("collapse").and_then(|collapse| runs.share(collapse)).is_some_and(|share| share.hits > 0)
}

/// In what share of the repetitions it happened, and between what shares the true one lies.
fn share(column: &Column, occurrence: &Occurrence, runs: &Runs<'_>, show: Show) -> (String, Mark) {
    let Some(share) = runs.share(occurrence) else { return (column.missing.to_owned(), Mark::None) };
    let mark = if share.hits > 0 { Mark::Bad } else { Mark::None };
    let mut text = percent(share.value());
    if show == Show::Interval {
        let (low, high) = share.interval();
        let low = percent(low);
        text += &format!(" [{}–{}]", low.strip_suffix(" %").unwrap_or(&low), percent(high));
    }
    (text, mark)
}

fn total(columns: &[Printed]) -> usize {
    columns.iter().map(|printed| printed.width + GAP).sum()
}

fn line(name: String, cells: impl Iterator<Item = String>) -> String {
    let gap = " ".repeat(GAP);
    cells.fold(name, |line, cell| line + &gap + &cell).trim_end().to_owned() + "\n"
}

/// What the figures are where there were repetitions.
fn note(repetitions: usize, show: Show) -> String {
    match (repetitions, show) {
        (0 | 1, _) => String::new(),
        (most, Show::Interval) => format!("medians of {most} repetitions [where the median lies, at 95 %]\n"),
        (most, Show::Range) => format!("medians of {most} repetitions [least–most]\n"),
        (most, _) => format!("medians of {most} repetitions; each is a row of summary.csv\n"),
    }
}

/// What is not there of the repetitions.
fn records(comparison: &Comparison) -> String {
    match comparison.unrecorded() {
        0 => String::new(),
        _ => "charts over time, timeseries.csv, attempts.csv and jobs.csv: repetition 1 only\n".to_owned(),
    }
}

fn column_width(column: &Column, cells: &[(String, Mark)]) -> usize {
    cells.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0).max(column.header.chars().count())
}

fn cells(column: &Column, metric: &Metric, policies: &[Runs<'_>], show: Show) -> Vec<(String, Mark)> {
    let ends = ends(metric, policies);
    let is_best = |spread: &Spread| {
        let best = |(best, worst): &(Spread, Spread)| spread.is_apart(worst) && !spread.is_apart(best);
        spread.median.is_some() && ends.as_ref().is_some_and(best)
    };
    let cell = |runs: &Runs<'_>| {
        let spread = runs.spread(|summary| metric.value(summary));
        let mark = match metric.name {
            "lost" if runs.loses() => Mark::Bad,
            _ if show != Show::Spread && !runs.loses() && is_best(&spread) => Mark::Best,
            _ => Mark::None,
        };
        // A loss in some repetition must not hide behind a median of none.
        (text(column, metric.unit, spread, if metric.name == "lost" { Show::Range } else { show }), mark)
    };
    policies.iter().map(cell).collect()
}

/// A median and, where it moved, its range; the range leaves the unit out where it is the median's.
fn text(column: &Column, unit: Unit, spread: Spread, show: Show) -> String {
    let write = |value: Option<f64>| value.map_or_else(|| column.missing.to_owned(), |value| figure::figure(unit, value));
    let (low, high) = match show {
        Show::Median => (spread.median, spread.median),
        Show::Range => (spread.least, spread.most),
        Show::Interval => spread.interval.unwrap_or((spread.least, spread.most)),
        Show::Spread => (spread.p5, spread.p95),
    };
    let (median, low, high) = (write(spread.median), write(low), write(high));
    if low == high {
        return if show == Show::Spread { low } else { median };
    }
    let behind = |text: &str| text.split_once(' ').map(|(_, unit)| format!(" {unit}"));
    let bare = |text: &str, unit: Option<String>| match unit {
        Some(unit) => text.strip_suffix(&unit).unwrap_or(text).to_owned(),
        None => text.to_owned(),
    };
    match show {
        Show::Spread => format!("{}–{high}", bare(&low, behind(&high))),
        _ => format!("{median} [{}–{}]", bare(&low, behind(&median)), bare(&high, behind(&median))),
    }
}

/// The best and the worst median among policies that lost nothing, where one is better than the other.
fn ends(metric: &Metric, policies: &[Runs<'_>]) -> Option<(Spread, Spread)> {
    let safe = policies.iter().filter(|runs| !runs.loses());
    let mut spreads: Vec<Spread> = safe.map(|runs| runs.spread(|summary| metric.value(summary))).collect();
    let median = |spread: &Spread| spread.median.unwrap_or(f64::INFINITY);
    spreads.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let (least, most) = (*spreads.first()?, *spreads.last()?);
    match metric.better {
        Better::Lower => Some((least, most)),
        Better::Higher => Some((most, least)),
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
