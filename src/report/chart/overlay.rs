//! Two runs over each other: for each policy the request rate and the jobs completed, one in the colour of the first policy, the other in that
//! of the second.

use std::path::Path;

use super::canvas::{Canvas, Drawn, QUIET, Side, Type, colour, dash};
use super::frame::{MARGIN, Plot};
use super::scale::Spread;
use super::tall;
use crate::report::{Curve, Error, Overlay};

const ROW: f64 = 210.0;
const TOP: f64 = 104.0;
const BELOW: f64 = 60.0;

/// Draws two runs into a PNG file.
///
/// # Errors
/// If the file can't be drawn or written.
pub fn save_overlay(overlay: &Overlay, path: &Path) -> Result<(), Error> {
    let size = tall(overlay.policies.len(), ROW as u32, (TOP + BELOW) as u32);
    let drawn = Canvas::create(path, size).and_then(|canvas| {
        draw(overlay, &canvas)?;
        canvas.save()
    });
    drawn.map_err(|reason| Error::Draw { chart: path.display().to_string(), reason: reason.0 })
}

fn draw(overlay: &Overlay, canvas: &Canvas<'_>) -> Drawn {
    let title = Type::of(25.0).bold();
    canvas.text("Two runs over each other, first repetition", (MARGIN, 30.0), title)?;
    let mut x = MARGIN;
    for (i, name) in overlay.names.iter().enumerate() {
        let kind = Type::of(15.0).bold().ink(colour(i));
        let name = canvas.fit(name, (canvas.width / 2.0 - x.min(MARGIN) - MARGIN).max(0.0), kind);
        canvas.text(&name, (x, 60.0), kind)?;
        x += canvas.measure(&name, kind) + 28.0;
    }
    let rows = overlay.policies.len().max(1) as f64;
    let row = (canvas.height - TOP - BELOW) / rows;
    let span = overlay.span();
    let most_rate = overlay.most(|curve| curve.rate);
    let most_done = overlay.most(|curve| curve.completed);
    for (n, policy) in overlay.policies.iter().enumerate() {
        let (top, bottom) = (TOP + n as f64 * row + 26.0, TOP + (n as f64 + 1.0) * row - 22.0);
        canvas.text(&policy.name, (MARGIN, top - 16.0), Type::of(15.0).bold())?;
        let last = n + 1 == overlay.policies.len();
        let middle = canvas.width / 2.0;
        let left = Plot::new((84.0, top), (middle - 30.0, bottom), span, most_rate, Spread::Root);
        let right = Plot::new((middle + 70.0, top), (canvas.width - MARGIN, bottom), span, most_done, Spread::Linear);
        for (plot, words, of) in [
            (left, "requests a second", (|curve: &Curve| curve.rate) as fn(&Curve) -> f64),
            (right, "jobs completed", |curve: &Curve| curve.completed),
        ] {
            canvas.text(words, (plot.right, top - 14.0), Type::of(13.0).ink(QUIET).side(Side::Right))?;
            plot.value_axis(canvas, "")?;
            plot.time_axis(canvas, last)?;
            for (i, curve) in policy.curves.iter().enumerate().rev() {
                let points: Vec<(f64, f64)> = curve.iter().map(|point| plot.at(point.at, of(point))).collect();
                canvas.line(&points, colour(i), 2.0, dash(i))?;
            }
        }
    }
    Ok(())
}
