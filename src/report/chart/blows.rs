//! Where chaos struck: a line at each blow, a faint band for as long as it lasts.

use plotters::style::Color;

use super::canvas::{ALARM, Canvas, Drawn, QUIET, Side, Type};
use super::frame::Plot;
use crate::report::Comparison;

/// Names that stand above a plot: what, at which place, and how it is written.
pub(super) type Names<'a> = Vec<(f64, &'a str, Type)>;

/// Draws the blows as planned, which are alike under every policy, and says where their names belong.
pub(super) fn draw(plot: &Plot, canvas: &Canvas<'_>, comparison: &Comparison) -> Result<Names<'static>, super::canvas::Reason> {
    let mut names = Vec::new();
    for strike in comparison.scenario.strikes(comparison.scenario.seed) {
        let from = plot.x.place(strike.at.as_secs_f64());
        if from >= plot.right {
            continue;
        }
        if let Some(lasts) = strike.what.lasts() {
            let until = plot.x.place((strike.at + lasts).as_secs_f64()).min(plot.right);
            canvas.rect((from, plot.top), (until, plot.bottom), ALARM.mix(0.07))?;
        }
        canvas.line(&[(from, plot.top - 4.0), (from, plot.bottom)], ALARM.mix(0.8), 1.2, &[])?;
        names.push((from, strike.what.short(), Type::of(13.5).ink(ALARM).side(Side::Middle)));
    }
    Ok(names)
}

/// Writes names above a plot, from left to right, each where there is room for it.
pub(super) fn write(mut names: Names<'_>, plot: &Plot, canvas: &Canvas<'_>) -> Drawn {
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut taken = plot.left;
    for (middle, name, kind) in names {
        let half = canvas.measure(name, kind) / 2.0;
        let middle = middle.clamp(plot.left + half, (plot.right - half).max(plot.left + half));
        if middle - half >= taken {
            canvas.text(name, (middle, plot.top - 11.0), kind)?;
            taken = middle + half + 8.0;
        }
    }
    Ok(())
}

/// How names of outages are written.
pub(super) fn quiet() -> Type {
    Type::of(13.5).ink(QUIET).side(Side::Middle)
}
