//! What the retries cost and what they bought: requests per job, and jobs lost in spite of them.

use plotters::style::Color;

use super::bars::{Bar, Panel};
use super::canvas::{Canvas, Drawn, QUIET, Type, colour};
use super::frame::{HEADER, MARGIN, below_header, median_of};
use super::{Story, tall};
use crate::metrics::Value;
use crate::report::Comparison;
use crate::report::across::Runs;
use crate::report::figure::{count, ratio};

/// How solid the parts of a bar are: useful, in vain, in vain during an outage; and for lost jobs given up, unfinished.
const SHADES: [f64; 3] = [1.0, 0.5, 0.22];
const COSTS: [&str; 3] = ["completed a job", "failed otherwise", "failed in an outage"];
const LOSSES: [&str; 2] = ["retries spent", "unfinished at the end"];

pub(super) fn title(comparison: &Comparison) -> String {
    format!("What the retries cost, and the jobs lost in spite of them{}", median_of(comparison))
}

pub(super) fn size(policies: usize) -> (u32, u32) {
    tall(policies * 2, 27, HEADER as u32 + 170)
}

pub(super) fn draw(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    let top = below_header(story.comparison) + 6.0;
    let high = (canvas.height - top - 30.0) / 2.0;
    let right = canvas.width - MARGIN;
    let bars = |bar: fn(&Runs<'_>) -> Bar| story.policies.iter().map(bar).collect();
    let panels = [
        (Panel { title: "Requests per job", bars: bars(cost), whole: false }, &COSTS[..]),
        (Panel { title: "Jobs lost", bars: bars(loss), whole: true }, &LOSSES[..]),
    ];
    for (i, (panel, words)) in panels.into_iter().enumerate() {
        let top = top + i as f64 * (high + 10.0);
        panel.draw(canvas, (MARGIN, top), (right, top + high))?;
        let title = canvas.measure(panel.title, Type::of(17.0).bold());
        shades(canvas, (MARGIN + title + 28.0, top + 12.0), words)?;
    }
    Ok(())
}

/// The key to the shades, in grey, since it holds for all colours.
fn shades(canvas: &Canvas<'_>, (left, y): (f64, f64), words: &[&str]) -> Drawn {
    let mut x = left;
    let kind = Type::of(13.5).ink(QUIET);
    for (word, shade) in words.iter().zip(SHADES) {
        canvas.rect((x, y - 7.0), (x + 14.0, y + 7.0), QUIET.mix(shade))?;
        canvas.text(word, (x + 20.0, y), kind)?;
        x += 44.0 + canvas.measure(word, kind);
    }
    Ok(())
}

fn cost(runs: &Runs<'_>) -> Bar {
    let jobs = runs.median(|s| s.counts.jobs).max(1.0);
    let requests = runs.median(|s| s.requests);
    let outage = runs.median(|s| s.wasted_requests).min(requests);
    let useful = runs.median(|s| s.counts.completed).min(requests - outage);
    let each = requests / jobs;
    Bar {
        name: runs.policy.to_owned(),
        colour: colour(runs.index),
        parts: vec![(useful / jobs, SHADES[0]), ((requests - outage - useful) / jobs, SHADES[1]), (outage / jobs, SHADES[2])],
        whisker: None,
        value: ratio(each),
        alarm: false,
    }
}

fn loss(runs: &Runs<'_>) -> Bar {
    let lost = runs.spread(|s| Some(Value::Count(s.counts.lost())));
    let median = lost.median.unwrap_or(0.0);
    let exhausted = runs.median(|s| s.counts.exhausted).min(median);
    let share = median / runs.median(|s| s.counts.jobs).max(1.0);
    let percent = if median > 0.0 { format!(" ({} %)", ratio(share * 100.0)) } else { String::new() };
    Bar {
        name: runs.policy.to_owned(),
        colour: colour(runs.index),
        parts: vec![(exhausted, SHADES[0]), (median - exhausted, SHADES[1])],
        whisker: lost.least.zip(lost.most).filter(|(least, most)| least < most),
        value: count(median) + &percent,
        alarm: runs.loses(),
    }
}
