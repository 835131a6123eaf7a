//! The signature picture: requests over time, a panel per policy, all on the same axes.
//!
//! Bars are bins and are for the eye; the dot is the exact sliding peak, which a bin may halve. Where one burst dwarfs the
//! rest the scale is a square root, and says so: a linear one would show the burst and nothing else.

use super::canvas::{Canvas, Drawn, QUIET, Side, Type, colour};
use super::frame::{HEADER, MARGIN, Plot, below_header, which_repetition};
use super::scale::Spread;
use super::{Story, bar_width, tall};
use crate::report::across::Runs;
use crate::report::figure::{chosen, count, many};
use crate::report::series::{self, Bin};
use crate::report::{Comparison, Run};
use crate::time::Instant;

const LEFT: f64 = 84.0;
/// Where the plots end and the figures begin.
const RIGHT: f64 = 965.0;
const BELOW: f64 = 56.0;
const BETWEEN: f64 = 14.0;
/// A peak so many times the capacity would squeeze everything else on a linear scale.
const DWARFS: f64 = 6.0;

pub(super) fn title(comparison: &Comparison) -> String {
    format!("Requests per second over time, by policy{}", which_repetition(comparison))
}

pub(super) fn size(policies: usize) -> (u32, u32) {
    tall(policies, 100, HEADER as u32 + BELOW as u32 + 24)
}

pub(super) fn draw(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    let header = below_header(story.comparison);
    let span = series::span(story.comparison);
    let width = bar_width(story.comparison);
    let bins: Vec<Vec<Bin>> = story.policies.iter().map(|runs| series::bins(&runs.first().record, width)).collect();
    let rate = |bin: &Bin| bin.requests as f64 / width.as_secs_f64();
    let peak = |runs: &Runs<'_>| peak_rate(runs.first(), story.comparison);
    let highest = bins.iter().flatten().map(rate).chain(story.policies.iter().map(peak)).fold(0.0, f64::max);
    let capacity = story.comparison.scenario.downstream.capacity();
    let spread = if highest > capacity * DWARFS { Spread::Root } else { Spread::Linear };
    let most = highest.max(capacity * 1.1) * 1.06;

    let unit = if spread == Spread::Root { "requests per second (square-root scale)" } else { "requests per second" };
    canvas.text(unit, (MARGIN, header - 6.0), Type::of(13.5).ink(QUIET))?;
    let top = header + 26.0;
    let each = (canvas.height - top - BELOW + BETWEEN) / story.policies.len().max(1) as f64;
    for (row, (runs, bins)) in story.policies.iter().zip(&bins).enumerate() {
        let top = top + row as f64 * each;
        let plot = Plot::new((LEFT, top), (RIGHT, top + each - BETWEEN), span, most, spread);
        plot.outages(canvas, story.comparison, row == 0)?;
        plot.value_axis(canvas, "")?;
        for bin in bins.iter().filter(|bin| bin.requests > 0) {
            let from = plot.at(bin.start.as_secs_f64(), rate(bin));
            let to = plot.at((bin.start + width).as_secs_f64(), 0.0);
            canvas.rect(from, to, colour(runs.index))?;
        }
        capacity_line(canvas, &plot, capacity, row == 0)?;
        plot.time_axis(canvas, row + 1 == story.policies.len())?;
        marks(canvas, &plot, runs, story.comparison)?;
        figures(canvas, &plot, runs, story.comparison)?;
    }
    Ok(())
}

fn capacity_line(canvas: &Canvas<'_>, plot: &Plot, capacity: f64, named: bool) -> Drawn {
    let y = plot.y.place(capacity);
    canvas.line(&[(plot.left, y), (plot.right, y)], QUIET, 1.0, &[6.0, 4.0])?;
    if named {
        let kind = Type::of(12.5).ink(QUIET).side(Side::Right);
        canvas.label(&format!("capacity {}/s", count(capacity.round())), (plot.right - 4.0, y - 10.0), kind)?;
    }
    Ok(())
}

/// The dot at the exact peak, and the moment at which the last job was completed.
fn marks(canvas: &Canvas<'_>, plot: &Plot, runs: &Runs<'_>, comparison: &Comparison) -> Drawn {
    let run = runs.first();
    let peak = run.summary.stampede_peak;
    if let Some(last) = last_completion(run) {
        let counts = run.summary.counts;
        let text = if counts.completed == counts.jobs { "all done" } else { "last completion" };
        let x = plot.x.place(last.as_secs_f64());
        canvas.line(&[(x, plot.top), (x, plot.bottom)], colour(runs.index), 1.5, &[2.0, 3.0])?;
        let kind = Type::of(13.0).ink(colour(runs.index)).bold();
        let room = plot.right - x > canvas.measure(text, kind) + 10.0;
        let (side, x) = if room { (Side::Left, x + 6.0) } else { (Side::Right, x - 6.0) };
        canvas.label(text, (x, plot.top + 10.0), kind.side(side))?;
    }
    if peak.calls > 0 {
        let (x, y) = plot.at(peak.at.as_secs_f64(), peak_rate(run, comparison));
        canvas.dot((x, y), 4.5, colour(runs.index))?;
        let text = format!("{} in {}", count(peak.calls as f64), chosen(comparison.scenario.stampede_window));
        let kind = Type::of(13.0).bold();
        let room = plot.right - x > canvas.measure(&text, kind) + 14.0;
        let (side, x) = if room { (Side::Left, x + 10.0) } else { (Side::Right, x - 10.0) };
        canvas.label(&text, (x, y.max(plot.top + 8.0)), kind.side(side))?;
    }
    Ok(())
}

/// The policy's name and its figures, right of its panel.
fn figures(canvas: &Canvas<'_>, plot: &Plot, runs: &Runs<'_>, comparison: &Comparison) -> Drawn {
    let summary = &runs.first().summary;
    let counts = summary.counts;
    let room = canvas.width - MARGIN / 2.0 - plot.right - 16.0;
    let mut lines = vec![
        (runs.policy.to_owned(), Type::of(17.0).bold().ink(colour(runs.index))),
        lost_line(counts.lost()),
        (format!("{} of {} completed", count(counts.completed as f64), count(counts.jobs as f64)), Type::of(14.0)),
        (many(summary.requests as f64, "request"), Type::of(14.0)),
    ];
    if let Some(peak) = summary.recovery_peak {
        let window = chosen(comparison.scenario.stampede_window);
        lines.push((format!("recovery peak {} in {window}", count(peak.calls as f64)), Type::of(14.0)));
    }
    let step = ((plot.bottom - plot.top) / lines.len() as f64).min(21.0);
    for (i, (text, kind)) in lines.into_iter().enumerate() {
        let y = plot.top + (i as f64 + 0.5) * step;
        let kind = canvas.shrink(&text, room, kind);
        canvas.text(&canvas.fit(&text, room, kind), (plot.right + 16.0, y), kind)?;
    }
    Ok(())
}

fn lost_line(lost: u64) -> (String, Type) {
    if lost == 0 {
        ("no job lost".to_owned(), Type::of(14.0))
    } else {
        (format!("{} LOST", many(lost as f64, "job")), Type::of(14.0).bold().ink(super::canvas::ALARM))
    }
}

fn last_completion(run: &Run) -> Option<Instant> {
    run.record.jobs.iter().filter(|job| job.state == crate::job::State::Completed).filter_map(|job| job.finished).max()
}

/// The stampede peak as a rate per second.
fn peak_rate(run: &Run, comparison: &Comparison) -> f64 {
    run.summary.stampede_peak.calls as f64 / comparison.scenario.stampede_window.as_secs_f64().max(1e-9)
}
