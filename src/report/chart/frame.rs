//! What all charts share: the header above, and for charts over time the plot with its axes and its outages.

use std::fmt::Write as _;
use std::time::Duration;

use plotters::style::{BLACK, Color};

use super::blows;
use super::canvas::{ALARM, Canvas, Drawn, GRID, Point, QUIET, Side, TEXT, Type};
use super::scale::{Scale, Spread, tick_text};
use crate::metrics::Limit;
use crate::report::Comparison;
use crate::report::figure::{chosen, count, many};

/// The most that a header takes.
pub(super) const HEADER: f64 = 110.0;
/// What it takes of that without a banner.
const WITHOUT_BANNER: f64 = 88.0;
/// The margin at both sides.
pub(super) const MARGIN: f64 = 24.0;

/// Where the header ends and the chart may begin.
pub(super) fn below_header(comparison: &Comparison) -> f64 {
    if banner(comparison).is_some() { HEADER } else { WITHOUT_BANNER }
}

/// Title, conditions and, where figures are not to be trusted or not complete, a banner.
pub(super) fn header(canvas: &Canvas<'_>, comparison: &Comparison, title: &str) -> Drawn {
    let room = canvas.width - 2.0 * MARGIN;
    let kind = Type::of(25.0).bold();
    canvas.text(&canvas.fit(title, room, kind), (MARGIN, 30.0), kind)?;
    let kind = Type::of(14.5).ink(QUIET);
    canvas.text(&canvas.fit(&conditions(comparison), room, kind), (MARGIN, 57.0), kind)?;
    if let Some(banner) = banner(comparison) {
        let kind = Type::of(15.0).bold().ink(ALARM);
        canvas.rect((MARGIN - 6.0, 70.0), (canvas.width - MARGIN + 6.0, 92.0), ALARM.mix(0.12))?;
        canvas.text(&canvas.fit(&banner, room, kind), (MARGIN, 81.0), kind)?;
    }
    Ok(())
}

fn banner(comparison: &Comparison) -> Option<String> {
    let spoiled: Vec<&str> = comparison
        .scenario
        .policies
        .iter()
        .map(|policy| policy.name.as_str())
        .filter(|name| comparison.runs.iter().any(|run| run.policy == *name && run.summary.limit == Limit::Harness))
        .collect();
    let mut parts = Vec::new();
    if comparison.partial || comparison.runs.iter().any(|run| run.partial) {
        parts.push("PARTIAL: interrupted, the figures cover a part of the runs only".to_owned());
    }
    if !spoiled.is_empty() {
        parts.push(format!("NOT TO BE TRUSTED: simq or the machine was the limit under {}", spoiled.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("  ·  "))
}

/// The conditions in one line.
fn conditions(comparison: &Comparison) -> String {
    let scenario = &comparison.scenario;
    let workers = &scenario.workers;
    let mut text = format!(
        "{} · {} × {} · capacity {}/s",
        many(scenario.job_count() as f64, "job"),
        many(f64::from(workers.count), "worker"),
        many(f64::from(workers.slots), "slot"),
        count(scenario.downstream.capacity().round()),
    );
    let outages = scenario.spells();
    for outage in outages.iter().take(3) {
        let (from, until) = (outage.window.from.since_start(), outage.window.until.since_start());
        let _ = write!(text, " · {} {}–{}", outage.mode.name(), chosen(from), chosen(until));
    }
    match outages.len() {
        0 => text += " · no outage",
        1..=3 => {}
        n => {
            let _ = write!(text, " and {} more", n - 3);
        }
    }
    if !scenario.chaos.is_empty() {
        let _ = write!(text, " · {}", many(scenario.strikes(scenario.seed).len() as f64, "blow"));
    }
    let _ = write!(text, " · seed {}", scenario.seed.0);
    if let Some(most @ 2..) = comparison.runs.iter().map(|run| run.repetition).max() {
        let _ = write!(text, " · {most} repetitions");
    }
    text
}

/// What a chart over time adds to its title where there were several repetitions.
pub(super) fn which_repetition(comparison: &Comparison) -> &'static str {
    if comparison.runs.iter().any(|run| run.repetition > 1) { ", first repetition" } else { "" }
}

/// What a chart of bars adds to its title where there were several repetitions.
pub(super) fn median_of(comparison: &Comparison) -> &'static str {
    if comparison.runs.iter().any(|run| run.repetition > 1) { ", medians" } else { "" }
}

/// A plot: a rectangle of the sheet with time across, from the start of the run, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
    pub(super) x: Scale,
    pub(super) y: Scale,
}

impl Plot {
    /// Time from zero to `span` across, values from zero to `most` upwards.
    pub(super) fn new((left, top): Point, (right, bottom): Point, span: Duration, most: f64, spread: Spread) -> Plot {
        // A little more than the span: what happens last must not stand on the edge.
        let x = Scale::new(span.as_secs_f64() * 1.015, (left, right), Spread::Linear);
        Plot { left, top, right, bottom, x, y: Scale::new(most, (bottom, top), spread) }
    }

    /// Where a moment and a value meet.
    pub(super) fn at(&self, secs: f64, value: f64) -> Point {
        (self.x.place(secs), self.y.place(value))
    }

    /// Outages as grey bands, and where chaos struck; with `named`, what they are stands above the plot where there is room.
    pub(super) fn outages(&self, canvas: &Canvas<'_>, comparison: &Comparison, named: bool) -> Drawn {
        let outages = comparison.scenario.spells();
        let mut names = Vec::new();
        for outage in &outages {
            let (from, until) = (self.x.place(outage.window.from.as_secs_f64()), self.x.place(outage.window.until.as_secs_f64()));
            if until <= self.left || from >= self.right {
                continue;
            }
            canvas.rect((from, self.top), (until, self.bottom), BLACK.mix(0.14))?;
            names.push((f64::midpoint(from, until), outage.mode.name(), blows::quiet()));
        }
        names.extend(blows::draw(self, canvas, comparison)?);
        if named { blows::write(names, self, canvas) } else { Ok(()) }
    }

    /// The base line and, with `labels`, ticks and the word for the axis below.
    pub(super) fn time_axis(&self, canvas: &Canvas<'_>, labels: bool) -> Drawn {
        canvas.line(&[(self.left, self.bottom), (self.right, self.bottom)], TEXT, 1.0, &[])?;
        let ticks = self.x.ticks(70.0);
        for tick in &ticks {
            let x = self.x.place(*tick);
            canvas.line(&[(x, self.bottom), (x, self.bottom + 4.0)], TEXT, 1.0, &[])?;
            if labels {
                let kind = Type::of(14.0).side(Side::Middle);
                canvas.text(&tick_text(*tick, &ticks), (x, self.bottom + 15.0), kind)?;
            }
        }
        if labels {
            let kind = Type::of(14.0).ink(QUIET).side(Side::Middle);
            let middle = f64::midpoint(self.left, self.right);
            canvas.text("seconds since the run began", (middle, self.bottom + 36.0), kind)?;
        }
        Ok(())
    }

    /// Eight grid lines at most, with their values at the left; `unit` is put behind each.
    pub(super) fn value_axis(&self, canvas: &Canvas<'_>, unit: &str) -> Drawn {
        let ticks = self.y.ticks(((self.bottom - self.top) / 8.0).max(22.0));
        for tick in &ticks {
            let y = self.y.place(*tick);
            canvas.line(&[(self.left, y), (self.right, y)], GRID, 0.5, &[])?;
            let text = tick_text(*tick, &ticks) + unit;
            canvas.text(&text, (self.left - 7.0, y), Type::of(13.0).side(Side::Right))?;
        }
        Ok(())
    }
}
