//! A strip per policy, time across, the darker the more requests: no jitter is a bar code, jitter is mist.

use plotters::style::RGBColor;

use super::canvas::{Canvas, Drawn, QUIET, Side, Type, colour};
use super::frame::{HEADER, MARGIN, Plot, below_header, which_repetition};
use super::scale::Spread;
use super::{Story, bar_width};
use crate::report::Comparison;
use crate::report::figure::{chosen, count};
use crate::report::series::{self, Bin};

const LEFT: f64 = 190.0;
const ROW: f64 = 60.0;
const BELOW: f64 = 56.0;

/// From white to a deep blue: one hue, so that darker can only mean more.
const PALE: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
const DEEP: RGBColor = RGBColor(0x08, 0x30, 0x6B);
/// The colour of the fewest requests that are drawn at all, as a share of the way to the deepest.
const FAINTEST: f64 = 0.10;

pub(super) fn title(comparison: &Comparison) -> String {
    format!("When requests were sent, by policy{}", which_repetition(comparison))
}

pub(super) fn size(policies: usize) -> (u32, u32) {
    let rows = u32::try_from(policies.max(1)).unwrap_or(u32::MAX);
    (1200, rows.saturating_mul(ROW as u32).saturating_add(HEADER as u32 + 26 + BELOW as u32).min(16_000))
}

pub(super) fn draw(story: &Story<'_>, canvas: &Canvas<'_>) -> Drawn {
    let header = below_header(story.comparison);
    let span = series::span(story.comparison);
    let width = bar_width(story.comparison);
    let bins: Vec<Vec<Bin>> = story.policies.iter().map(|runs| series::bins(&runs.first().record, width)).collect();
    let most = bins.iter().flatten().map(|bin| bin.requests).max().unwrap_or(0);
    let top = header + 26.0;
    let each = (canvas.height - top - BELOW) / story.policies.len().max(1) as f64;
    let corner = (canvas.width - MARGIN, canvas.height - BELOW);
    let plot = Plot::new((LEFT, top), corner, span, 1.0, Spread::Linear);
    plot.outages(canvas, story.comparison, true)?;
    for (row, (runs, bins)) in story.policies.iter().zip(&bins).enumerate() {
        let top = top + row as f64 * each;
        let kind = Type::of(16.0).bold().side(Side::Right).ink(colour(runs.index));
        let kind = canvas.shrink(runs.policy, LEFT - MARGIN - 10.0, kind);
        canvas.text(&canvas.fit(runs.policy, LEFT - MARGIN - 10.0, kind), (LEFT - 12.0, top + each / 2.0), kind)?;
        let ended = runs.first().record.ended.as_secs_f64();
        canvas.rect((plot.left, top + 6.0), (plot.x.place(ended), top + each - 6.0), PALE)?;
        for bin in bins.iter().filter(|bin| bin.requests > 0) {
            let from = plot.x.place(bin.start.as_secs_f64());
            let to = plot.x.place((bin.start + width).as_secs_f64());
            canvas.rect((from, top + 6.0), (to, top + each - 6.0), shade(bin.requests, most))?;
        }
    }
    plot.time_axis(canvas, true)?;
    key(canvas, header, most, &chosen(width))
}

/// The shade of a count, by its logarithm.
fn shade(requests: u64, most: u64) -> RGBColor {
    let share = if most > 1 { (requests as f64).ln() / (most as f64).ln() } else { 1.0 };
    let share = FAINTEST + (1.0 - FAINTEST) * share.clamp(0.0, 1.0);
    let mix = |pale: u8, deep: u8| (f64::from(pale) + (f64::from(deep) - f64::from(pale)) * share).round() as u8;
    RGBColor(mix(PALE.0, DEEP.0), mix(PALE.1, DEEP.1), mix(PALE.2, DEEP.2))
}

/// What the shades mean, at the right above the strips.
fn key(canvas: &Canvas<'_>, header: f64, most: u64, bin: &str) -> Drawn {
    if most == 0 {
        return Ok(());
    }
    let kind = Type::of(13.5).ink(QUIET);
    let y = header - 6.0;
    let end = format!("{} requests in {bin} (log scale)", count(most as f64));
    let mut x = canvas.width - MARGIN - canvas.measure(&end, kind);
    canvas.text(&end, (x, y), kind)?;
    x -= 8.0;
    const STEPS: u64 = 60;
    for step in (0..STEPS).rev() {
        let requests = (most as f64).powf(step as f64 / (STEPS - 1) as f64).round() as u64;
        canvas.rect((x - 2.5, y - 7.0), (x, y + 7.0), shade(requests.max(1), most))?;
        x -= 2.5;
    }
    canvas.text("1", (x - 8.0, y), kind.side(Side::Right))
}
