//! Two pictures of what a stampede costs, a panel per policy: the downstream's work, useful and in vain, and the calls of
//! ordinary users, answered and failed. Each bar is split: what came to good at the bottom, in the policy's colour.

use std::time::Duration;

use plotters::style::Color;

use super::canvas::{Canvas, Drawn, QUIET, TEXT, Type, colour};
use super::frame::{HEADER, MARGIN, Plot, below_header, which_repetition};
use super::scale::Spread;
use super::{Story, bar_width, tall};
use crate::metrics::works;
use crate::report::figure::{percent, seconds};
use crate::report::{Comparison, Run, series};
use crate::time::{Instant, nanos};

const LEFT: f64 = 84.0;
/// Where the plots end and the figures begin.
const RIGHT: f64 = 930.0;
const BELOW: f64 = 56.0;
const BETWEEN: f64 = 14.0;

/// What came to good and what did not, in a bin.
#[derive(Clone, Copy, Default)]
struct Halves {
    good: f64,
    bad: f64,
}

/// What a picture shows.
struct Subject {
    unit: &'static str,
    events: fn(&Run) -> Vec<(Instant, bool)>,
    figures: fn(&Run) -> Vec<String>,
}

const WORK: Subject = Subject {
    unit: "calls worked off per second; dark: when it was done its caller had given up",
    events: |run| works(&run.record).map(|(work, in_vain)| (work.until, in_vain)).collect(),
    figures: work_figures,
};

const USERS: Subject = Subject {
    unit: "ordinary users' calls per second; dark: failed",
    events: |run| {
        run.record.users.iter().filter(|call| call.outcome.is_some()).map(|call| (call.planned, call.failed())).collect()
    },
    figures: user_figures,
};

pub(super) fn has_work(comparison: &Comparison) -> bool {
    comparison.runs.iter().any(|run| !run.record.services.is_empty())
}

pub(super) fn has_users(comparison: &Comparison) -> bool {
    comparison.runs.iter().any(|run| !run.record.users.is_empty())
}

pub(super) fn work_title(comparison: &Comparison) -> String {
    format!("For whom the downstream worked, by policy{}", which_repetition(comparison))
}

pub(super) fn users_title(comparison: &Comparison) -> String {
    format!("What ordinary users saw, by policy{}", which_repetition(comparison))
}

pub(super) fn size(policies: usize) -> (u32, u32) {
    tall(policies, 110, HEADER as u32 + BELOW as u32 + 24)
}

pub(super) fn work(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    draw(&WORK, story, canvas)
}

pub(super) fn users(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    draw(&USERS, story, canvas)
}

fn draw(subject: &Subject, story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    let header = below_header(story.comparison);
    let span = series::span(story.comparison);
    // Twice as wide as elsewhere: two halves of a bar need more calls than one to be seen.
    let width = bar_width(story.comparison) * 2;
    let panels: Vec<Vec<Halves>> = story.policies.iter().map(|runs| bins(&(subject.events)(runs.first()), span, width)).collect();
    let rate = |count: f64| count / width.as_secs_f64().max(1e-9);
    let most = panels.iter().flatten().map(|bin| rate(bin.good + bin.bad)).fold(0.0, f64::max).max(1.0) * 1.06;
    canvas.text(subject.unit, (MARGIN, header - 6.0), Type::of(13.5).ink(QUIET))?;
    let top = header + 26.0;
    let each = (canvas.height - top - BELOW + BETWEEN) / story.policies.len().max(1) as f64;
    for (row, (runs, bins)) in story.policies.iter().zip(&panels).enumerate() {
        let top = top + row as f64 * each;
        let plot = Plot::new((LEFT, top), (RIGHT, top + each - BETWEEN), span, most, Spread::Linear);
        plot.outages(canvas, story.comparison, row == 0)?;
        plot.value_axis(canvas, "")?;
        for (i, bin) in bins.iter().enumerate() {
            let (from, to) = (i as f64 * width.as_secs_f64(), (i + 1) as f64 * width.as_secs_f64());
            bar(canvas, &plot, (from, to), (0.0, rate(bin.good)), colour(runs.index).mix(1.0))?;
            bar(canvas, &plot, (from, to), (rate(bin.good), rate(bin.good + bin.bad)), TEXT.mix(0.72))?;
        }
        plot.time_axis(canvas, row + 1 == story.policies.len())?;
        let mut lines = vec![(runs.policy.to_owned(), Type::of(17.0).bold().ink(colour(runs.index)))];
        lines.extend((subject.figures)(runs.first()).into_iter().map(|text| (text, Type::of(14.0))));
        figures(canvas, &plot, lines)?;
    }
    Ok(())
}

fn bar(
    canvas: &Canvas<'_>,
    plot: &Plot,
    (from, to): (f64, f64),
    (low, high): (f64, f64),
    ink: plotters::style::RGBAColor,
) -> Drawn {
    if high <= low {
        return Ok(());
    }
    canvas.rect(plot.at(from, high), plot.at(to, low), ink)
}

fn bins(events: &[(Instant, bool)], span: Duration, width: Duration) -> Vec<Halves> {
    let width = nanos(width).max(1);
    let count = nanos(span).div_ceil(width).max(1) as usize;
    let mut bins = vec![Halves::default(); count];
    for (at, bad) in events {
        // What ends after the run is not shown.
        if let Some(bin) = bins.get_mut((at.as_nanos() / width) as usize) {
            if *bad { bin.bad += 1.0 } else { bin.good += 1.0 }
        }
    }
    bins
}

fn figures(canvas: &Canvas<'_>, plot: &Plot, lines: Vec<(String, Type)>) -> Drawn {
    let room = canvas.width - MARGIN / 2.0 - plot.right - 16.0;
    let step = ((plot.bottom - plot.top) / lines.len() as f64).min(21.0);
    for (i, (text, kind)) in lines.into_iter().enumerate() {
        let y = plot.top + (i as f64 + 0.5) * step;
        let kind = canvas.shrink(&text, room, kind);
        canvas.text(&canvas.fit(&text, room, kind), (plot.right + 16.0, y), kind)?;
    }
    Ok(())
}

fn work_figures(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(share) = run.summary.wasted_work {
        lines.push(format!("{} of the work in vain", percent(share)));
    }
    if let Some(after) = run.summary.aftermath {
        let took = seconds(after.down_for.as_secs_f64());
        lines.push(match (after.recovered, after.down_for.is_zero()) {
            (true, true) => "well when the outage ended".to_owned(),
            (true, false) => format!("well {took} after the outage"),
            (false, _) if after.load_ended => format!("down for {took}, till jobs stopped"),
            (false, _) => format!("down for {took}, to the end"),
        });
        if let Some(share) = after.wasted_work.filter(|_| after.metastable) {
            lines.push(format!("{} in vain meanwhile", percent(share)));
        }
    }
    lines
}

fn user_figures(run: &Run) -> Vec<String> {
    let Some(users) = run.summary.users else { return Vec::new() };
    let phases = [("before", users.before), ("during", users.during), ("after", users.after)];
    let line = |(name, phase): (&str, crate::metrics::UserPhase)| {
        let failed = percent(phase.failed_share()?);
        Some(format!("{name}: {failed} failed, p99 {}", seconds(phase.latency.p99_ms / 1e3)))
    };
    phases.into_iter().filter_map(line).collect()
}
