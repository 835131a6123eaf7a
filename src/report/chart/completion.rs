//! Jobs completed, as a share of all jobs, all policies on one pair of axes.
//!
//! The share is of all jobs that were to arrive: a policy that loses jobs flattens below 100 %, and says how many it lost.

use plotters::style::{Color, RGBColor};

use super::Story;
use super::canvas::{ALARM, Canvas, Drawn, QUIET, Type, colour, dash};
use super::frame::{MARGIN, Plot, below_header, which_repetition};
use super::scale::Spread;
use crate::job::State;
use crate::report::across::Runs;
use crate::report::figure::count;
use crate::report::series;
use crate::report::{Comparison, Run};

const LEFT: f64 = 84.0;
const RIGHT: f64 = 930.0;
/// Points of a curve: more than the plot has units.
const POINTS: usize = 1000;
/// Room for a label of two lines.
const LABEL: f64 = 42.0;

pub(super) fn title(comparison: &Comparison) -> String {
    format!("Jobs completed over time, as a share of all jobs{}", which_repetition(comparison))
}

pub(super) fn draw(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    let header = below_header(story.comparison);
    let span = series::span(story.comparison);
    let (top, bottom) = (header + 26.0, canvas.height - 56.0);
    let plot = Plot::new((LEFT, top), (RIGHT, bottom), span, 100.0, Spread::Linear);
    canvas.text("completed, % of all jobs", (MARGIN, header - 6.0), Type::of(13.5).ink(QUIET))?;
    plot.outages(canvas, story.comparison, true)?;
    plot.value_axis(canvas, " %")?;
    plot.time_axis(canvas, true)?;
    let mut ends: Vec<(f64, &Runs<'_>)> = Vec::new();
    // The first policies last: they have colours of their own, and lie above the grey ones.
    for runs in story.policies.iter().rev() {
        let curve = curve(runs.first(), &plot);
        let Some(&(x, y)) = curve.last() else { continue };
        canvas.line(&curve, colour(runs.index), 2.5, dash(runs.index))?;
        canvas.line(&[(x, y), (plot.right, y)], colour(runs.index).mix(0.35), 1.0, &[])?;
        canvas.dot((x, y), 4.0, colour(runs.index))?;
        ends.push((y, runs));
    }
    labels(canvas, &plot, ends)
}

/// The curve from the start to the end of the run.
fn curve(run: &Run, plot: &Plot) -> Vec<(f64, f64)> {
    let mut times: Vec<f64> = run
        .record
        .jobs
        .iter()
        .filter(|job| job.state == State::Completed)
        .filter_map(|job| job.finished)
        .map(|at| at.as_secs_f64())
        .collect();
    times.sort_by(f64::total_cmp);
    let jobs = run.summary.counts.jobs.max(1) as f64;
    let end = run.record.ended.as_secs_f64();
    let point = |i: usize| {
        let secs = end * i as f64 / POINTS as f64;
        let done = times.partition_point(|time| *time <= secs);
        plot.at(secs, done as f64 / jobs * 100.0)
    };
    (0..=POINTS).map(point).collect()
}

/// Labels at the ends of the lines, moved apart where they would overlap.
fn labels(canvas: &Canvas<'_>, plot: &Plot, mut ends: Vec<(f64, &Runs<'_>)>) -> Drawn {
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ys = apart(&ends.iter().map(|end| end.0).collect::<Vec<f64>>(), LABEL, (plot.top, plot.bottom));
    let room = canvas.width - plot.right - 34.0 - MARGIN / 2.0;
    let step = ys.windows(2).map(|pair| pair[1] - pair[0]).fold(LABEL, f64::min);
    for (&(end, runs), y) in ends.iter().zip(ys) {
        let ink = colour(runs.index);
        canvas.line(&[(plot.right, end), (plot.right + 20.0, y)], ink.mix(0.35), 1.0, &[])?;
        let kind = Type::of((step * 0.4).clamp(8.0, 16.0)).bold().ink(ink);
        let kind = canvas.shrink(runs.policy, room, kind);
        let name = canvas.fit(runs.policy, room, kind);
        canvas.text(&name, (plot.right + 25.0, y - step * 0.2), kind)?;
        let (text, ink) = result(runs.first());
        let kind = Type::of((step * 0.34).clamp(7.0, 14.0)).ink(ink);
        let kind = canvas.shrink(&text, room, kind);
        canvas.text(&canvas.fit(&text, room, kind), (plot.right + 25.0, y + step * 0.2), kind)?;
    }
    Ok(())
}

/// What a policy came to: what it lost before what it did.
fn result(run: &Run) -> (String, RGBColor) {
    let counts = run.summary.counts;
    let mut text = format!("{} of {} done", count(counts.completed as f64), count(counts.jobs as f64));
    if counts.permanent > 0 {
        text += &format!(", {} rejected", count(counts.permanent as f64));
    }
    if counts.lost() > 0 { (format!("{} LOST, {text}", count(counts.lost() as f64)), ALARM) } else { (text, QUIET) }
}

/// Moves ascending places at least `gap` apart within a span, as little as a sweep down and a sweep up need; closer where
/// there is no such room.
fn apart(places: &[f64], gap: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let gap = if places.len() > 1 { gap.min((high - low) / (places.len() - 1) as f64) } else { gap };
    let mut moved = places.to_vec();
    let mut least = low;
    for place in &mut moved {
        *place = place.max(least);
        least = *place + gap;
    }
    let mut most = high;
    for place in moved.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_apart_and_stay_inside() {
        assert_eq!(apart(&[10.0, 11.0, 99.0], 10.0, (0.0, 100.0)), [10.0, 20.0, 99.0]);
        assert_eq!(apart(&[95.0, 98.0, 99.0], 10.0, (0.0, 100.0)), [80.0, 90.0, 100.0]);
        assert_eq!(apart(&[1.0; 3], 90.0, (0.0, 100.0)), [0.0, 50.0, 100.0]);
        assert!(apart(&[], 1.0, (0.0, 1.0)).is_empty());
    }
}
