//! Stampede peaks, four kinds apart: a panel each, since the overall peak is often the herd's first arrival, which no policy
//! can help, and only the peak after an outage tells one policy from another.

use super::bars::{Bar, Panel};
use super::canvas::{Canvas, Drawn, QUIET, Type, colour};
use super::frame::{HEADER, MARGIN, below_header, median_of};
use super::{Story, tall};
use crate::metrics::Metric;
use crate::report::Comparison;
use crate::report::across::Runs;
use crate::report::figure::{chosen, count, many};

const KINDS: [(&str, &str); 4] = [
    ("recovery_peak", "After an outage (recovery)"),
    ("retry_peak", "Retries"),
    ("first_peak", "First attempts"),
    ("stampede_peak", "All requests"),
];

pub(super) fn title(comparison: &Comparison) -> String {
    let window = chosen(comparison.scenario.stampede_window);
    format!("Stampede peaks: most requests in any {window}{}", median_of(comparison))
}

pub(super) fn size(policies: usize) -> (u32, u32) {
    tall(policies * 2, 27, HEADER as u32 + 190)
}

pub(super) fn draw(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    let repeated = story.policies.iter().any(|runs| runs.runs.len() > 1);
    let note = if repeated { "; whiskers from the least to the most over repetitions" } else { "" };
    let note = format!("Each panel has a scale of its own{note}.");
    canvas.text(&note, (MARGIN, canvas.height - 18.0), Type::of(13.5).ink(QUIET))?;
    let (between, top) = (44.0, below_header(story.comparison) + 6.0);
    let wide = (canvas.width - 2.0 * MARGIN - between) / 2.0;
    let high = (canvas.height - top - 40.0 - 20.0) / 2.0;
    for (i, (metric, title)) in KINDS.into_iter().enumerate() {
        let left = MARGIN + (i % 2) as f64 * (wide + between);
        let top = top + (i / 2) as f64 * (high + 20.0);
        let bars = story.policies.iter().map(|runs| bar(metric, runs)).collect();
        Panel { title, bars, whole: true }.draw(canvas, (left, top), (left + wide, top + high))?;
    }
    Ok(())
}

fn bar(metric: &str, runs: &Runs<'_>) -> Bar {
    let spread = runs.spread(|summary| Metric::named(metric).and_then(|metric| metric.value(summary)));
    let whisker = spread.least.zip(spread.most).filter(|(least, most)| least < most);
    let mut value = spread.median.map_or_else(|| "no outage".to_owned(), count);
    // A policy that gave its jobs up comes back with few requests: that is no merit.
    let alarm = metric == "recovery_peak" && spread.median.is_some() && runs.loses();
    if alarm {
        value += &format!(" · {} lost", many(runs.median(|s| s.counts.lost()), "job"));
    }
    Bar {
        name: runs.policy.to_owned(),
        colour: colour(runs.index),
        parts: spread.median.map(|median| (median, 1.0)).into_iter().collect(),
        whisker,
        value,
        alarm,
    }
}
