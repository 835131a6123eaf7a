//! How figures differ from seed to seed: a panel for each that matters most, a row per policy, a stroke per seed.
//!
//! The pale band goes from the 5th to the 95th percentile of the seeds, the dark one is where the median lies. Where two dark bands
//! overlap the policies can't be ranked by that figure, whatever one seed says.

use plotters::style::Color;

use super::canvas::{ALARM, Canvas, Drawn, GRID, Point, QUIET, Side, TEXT, Type, colour};
use super::frame::{HEADER, MARGIN, below_header};
use super::scale::{Scale, Spread, tick_text};
use super::{Story, tall};
use crate::metrics::{Metric, Occurrence, Unit};
use crate::report::Comparison;
use crate::report::across::{self, Runs};
use crate::report::figure::{figure, percent};

/// Two have no spread worth a picture.
const ENOUGH: usize = 3;
/// Strokes in a row; more seeds than that are told by so many of their quantiles.
const STROKES: usize = 200;
const TITLE: f64 = 32.0;
const AXIS: f64 = 26.0;
/// The height of a row where there is room.
const ROW: f64 = 80.0;

/// A figure in a panel.
struct Subject {
    metric: &'static str,
    title: &'static str,
    /// What is said of seeds that have no value.
    missing: &'static str,
}

const AFTER_OUTAGE: Subject = Subject { metric: "recovery_peak", title: "Recovery peak (requests in a window)", missing: "none" };
const OVERALL: Subject = Subject { metric: "stampede_peak", title: "Stampede peak (requests in a window)", missing: "none" };
const OTHERS: [Subject; 3] = [
    Subject { metric: "completion_p99_s", title: "99 % of the jobs completed (s)", missing: "never" },
    Subject { metric: "amplification", title: "Requests per job", missing: "none" },
    Subject { metric: "lost", title: "Jobs lost", missing: "none" },
];

pub(super) fn are_enough(comparison: &Comparison) -> bool {
    across::policies(comparison).iter().any(|runs| runs.runs.len() >= ENOUGH)
}

pub(super) fn title(comparison: &Comparison) -> String {
    let most = across::policies(comparison).iter().map(|runs| runs.runs.len()).max().unwrap_or(0);
    format!("How {most} repetitions differ, each with a seed of its own")
}

pub(super) fn size(policies: usize) -> (u32, u32) {
    tall(policies * 2, 34, HEADER as u32 + 200)
}

pub(super) fn draw(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    let first = if story.comparison.scenario.spells().is_empty() { OVERALL } else { AFTER_OUTAGE };
    let note =
        "A stroke is a repetition; pale: from 5 % to 95 % of them; dark: where the median lies (95 % interval, from six on).";
    canvas.text(note, (MARGIN, canvas.height - 18.0), Type::of(13.5).ink(QUIET))?;
    let (between, top) = (44.0, below_header(story.comparison) + 6.0);
    let wide = (canvas.width - 2.0 * MARGIN - between) / 2.0;
    let high = (canvas.height - top - 40.0 - 20.0) / 2.0;
    for (i, subject) in [first].iter().chain(&OTHERS).enumerate() {
        let left = MARGIN + (i % 2) as f64 * (wide + between);
        let top = top + (i / 2) as f64 * (high + 20.0);
        panel(story, canvas, subject, (left, top), (left + wide, top + high))?;
    }
    Ok(())
}

fn panel(story: &Story<'_>, canvas: &Canvas<'_>, subject: &Subject, (left, top): Point, (right, bottom): Point) -> Drawn {
    let Some(metric) = Metric::named(subject.metric) else { return Ok(()) };
    canvas.text(subject.title, (left, top + 12.0), Type::of(17.0).bold())?;
    let row = ((bottom - top - TITLE - AXIS) / story.policies.len().max(1) as f64).min(ROW);
    let kind = Type::of((row * 0.42).clamp(9.0, 15.5)).bold();
    let value_kind = Type::of((row * 0.38).clamp(8.0, 14.0));
    let words: Vec<String> = story.policies.iter().map(|runs| said(subject, metric, runs)).collect();
    let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
    let names = widest(&mut story.policies.iter().map(|runs| canvas.measure(runs.policy, kind))).min((right - left) * 0.28);
    let values = widest(&mut words.iter().map(|text| canvas.measure(text, value_kind))).min((right - left) * 0.4);
    let (from, to) = (left + names + 12.0, (right - values - 12.0).max(left + names + 52.0));
    let all: Vec<Vec<f64>> = story.policies.iter().map(|runs| runs.values(|summary| metric.value(summary))).collect();
    let most = all.iter().filter_map(|values| values.last().copied()).fold(0.0, f64::max);
    let scale = Scale::new(most * 1.02, (from, to), Spread::Linear);
    let end = top + TITLE + row * story.policies.len() as f64;
    let whole = matches!(metric.unit, Unit::Jobs | Unit::Calls);
    axis(canvas, &scale, (top + TITLE, end), whole)?;
    for (i, (runs, values)) in story.policies.iter().zip(&all).enumerate() {
        let middle = top + TITLE + (i as f64 + 0.5) * row;
        let ink = colour(runs.index);
        let name_kind = canvas.shrink(runs.policy, names, kind.side(Side::Right));
        canvas.text(&canvas.fit(runs.policy, names, name_kind), (from - 8.0, middle), name_kind.ink(ink))?;
        strip(canvas, &scale, &runs.spread(|summary| metric.value(summary)), values, (middle, row * 0.34, ink))?;
        let alarm = subject.metric == "lost" && runs.loses();
        let value_kind = value_kind.ink(if alarm { ALARM } else { TEXT });
        canvas.text(&canvas.fit(&words[i], right - to - 8.0, value_kind), (to + 10.0, middle), value_kind)?;
    }
    canvas.line(&[(from, top + TITLE), (from, end)], TEXT, 1.0, &[])
}

/// Ticks and their lines; counts have no ticks between whole numbers.
fn axis(canvas: &Canvas<'_>, scale: &Scale, (top, bottom): Point, whole: bool) -> Drawn {
    let ticks: Vec<f64> = scale.ticks(scale.length() / 6.0).into_iter().filter(|tick| !whole || tick.fract() == 0.0).collect();
    for tick in &ticks {
        let x = scale.place(*tick);
        canvas.line(&[(x, top), (x, bottom)], GRID, 0.5, &[])?;
        canvas.text(&tick_text(*tick, &ticks), (x, bottom + 13.0), Type::of(12.5).ink(QUIET).side(Side::Middle))?;
    }
    Ok(())
}

/// A row: strokes, and behind them the bands.
fn strip(
    canvas: &Canvas<'_>,
    scale: &Scale,
    spread: &across::Spread,
    values: &[f64],
    (middle, half, ink): (f64, f64, plotters::style::RGBColor),
) -> Drawn {
    let Some(greatest) = values.last() else { return Ok(()) };
    // What has no end reaches to the edge: some repetitions lie beyond it.
    let place = |value: Option<f64>| scale.place(value.unwrap_or(greatest * 2.0));
    let band = |(low, high): (Option<f64>, Option<f64>), half: f64, solid: f64| {
        canvas.rect((place(low), middle - half), (place(high), middle + half), ink.mix(solid))
    };
    band((spread.p5, spread.p95), half, 0.16)?;
    for i in 0..values.len().min(STROKES) {
        let value = if values.len() <= STROKES { values[i] } else { values[i * (values.len() - 1) / (STROKES - 1)] };
        let x = scale.place(value);
        canvas.line(&[(x, middle - half * 0.7), (x, middle + half * 0.7)], ink.mix(0.38), 0.5, &[])?;
    }
    if let Some(interval) = spread.interval.filter(|_| spread.median.is_some()) {
        band(interval, half * 0.32, 1.0)?;
    }
    let Some(median) = spread.median else { return Ok(()) };
    let x = scale.place(median);
    canvas.line(&[(x, middle - half), (x, middle + half)], TEXT, 2.0, &[])
}

/// The median and its spread, and what has no value.
fn said(subject: &Subject, metric: &Metric, runs: &Runs<'_>) -> String {
    let spread = runs.spread(|summary| metric.value(summary));
    let write = |value: Option<f64>| value.map_or_else(|| subject.missing.to_owned(), |value| figure(metric.unit, value));
    let mut text = write(spread.median);
    let (low, high) = (write(spread.p5), write(spread.p95));
    if low != high {
        let unit = high.split_once(' ').map_or("", |(_, unit)| unit);
        text += &format!(" ({}–{high})", low.strip_suffix(unit).unwrap_or(&low).trim_end());
    }
    if subject.metric == "lost"
        && let Some(share) = Occurrence::named("lost_jobs").and_then(|lost| runs.share(lost)).filter(|share| share.hits > 0)
    {
        text += &format!(" · lost in {}", percent(share.value()));
    }
    text
}
