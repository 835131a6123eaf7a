//! Pictures that a stranger can read at a glance, as PNG, without a font or a library of the system.
//!
//! ```text
//!  canvas   ink, type and primitives in logical units; everything is drawn at 2x
//!  scale    values to places: linear, square root, logarithmic; round ticks
//!  frame    what all charts share: title, conditions, banner, axes, outages in grey
//!  CHARTS   one file each
//! ```
//! The rules: a policy keeps its colour and its dash in every chart; one scale for all policies; labels stand at what they
//! name, there are no legends of colours; titles say what is measured, subtitles under which conditions. Charts over time
//! show the first repetition and say so; bars are medians over all, and where there are several one chart shows how they differ.

mod attempts;
mod bars;
mod blows;
mod canvas;
mod completion;
mod delays;
mod frame;
mod heat;
mod overlay;
mod peaks;
mod requests;
mod scale;
mod seeds;
mod split;

use std::path::Path;
use std::time::Duration;

use super::Error;
use super::across::{Runs, policies};
use super::series;
use crate::report::Comparison;
use canvas::{Canvas, Drawn};

pub use delays::save_delays;
pub use overlay::save_overlay;

/// A kind of chart.
pub(super) struct Chart {
    /// The file's name, without `.png`.
    pub(super) slug: &'static str,
    title: fn(&Comparison) -> String,
    /// Width and height in logical units, for so many policies.
    size: fn(usize) -> (u32, u32),
    draw: fn(&Story<'_>, &Canvas<'_>) -> Drawn,
    /// Whether the runs have what it shows.
    pub(super) applies: fn(&Comparison) -> bool,
}

/// What charts are drawn from.
pub(super) struct Story<'a> {
    pub(super) comparison: &'a Comparison,
    /// The policies that were run.
    pub(super) policies: Vec<Runs<'a>>,
}

/// Every chart, in order of worth.
pub(super) const CHARTS: &[Chart] = &[
    Chart { slug: "requests", title: requests::title, size: requests::size, draw: requests::draw, applies: |_| true },
    Chart { slug: "peaks", title: peaks::title, size: peaks::size, draw: peaks::draw, applies: |_| true },
    Chart { slug: "completion", title: completion::title, size: |_| (1200, 820), draw: completion::draw, applies: |_| true },
    Chart { slug: "attempts", title: attempts::title, size: attempts::size, draw: attempts::draw, applies: |_| true },
    Chart { slug: "heat", title: heat::title, size: heat::size, draw: heat::draw, applies: |_| true },
    Chart { slug: "work", title: split::work_title, size: split::size, draw: split::work, applies: split::has_work },
    Chart { slug: "users", title: split::users_title, size: split::size, draw: split::users, applies: split::has_users },
    Chart { slug: "seeds", title: seeds::title, size: seeds::size, draw: seeds::draw, applies: seeds::are_enough },
];

impl Chart {
    /// Draws the chart into a PNG file.
    pub(super) fn save(&self, comparison: &Comparison, path: &Path) -> Result<(), Error> {
        let story = Story { comparison, policies: policies(comparison) };
        let drawn = Canvas::create(path, (self.size)(story.policies.len())).and_then(|canvas| {
            frame::header(&canvas, comparison, &(self.title)(comparison))?;
            (self.draw)(&story, &canvas)?;
            canvas.save()
        });
        drawn.map_err(|reason| Error::Draw { chart: format!("{}.png", self.slug), reason: reason.0 })
    }
}

/// How wide the bars of charts are: the stampede window where that makes 40 to 800 of them, so that a bar and a peak can be
/// compared; else as in the files, but no less than a fifth of the window, since a bar of a millisecond would show each lone
/// request of a short run as a thousand a second.
fn bar_width(comparison: &Comparison) -> Duration {
    let (span, window) = (series::span(comparison), comparison.scenario.stampede_window);
    match span.as_nanos() / window.as_nanos().max(1) {
        40..=800 => window,
        _ => series::bin_width(span).max(window / 5),
    }
}

/// The canvas's height for `rows` rows of a chart: as tall as all charts, and taller where that would squeeze them.
fn tall(rows: usize, row: u32, around: u32) -> (u32, u32) {
    let needed = u32::try_from(rows).unwrap_or(u32::MAX).saturating_mul(row).saturating_add(around);
    // A thousand policies would be a picture that no viewer opens.
    (1200, needed.clamp(820, 16_000))
}
