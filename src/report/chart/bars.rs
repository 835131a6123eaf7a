//! A panel of horizontal bars, a row per policy: what charts without time are made of.

use plotters::style::{Color, RGBColor};

use super::canvas::{ALARM, Canvas, Drawn, GRID, Point, QUIET, Side, TEXT, Type};
use super::scale::{Scale, Spread, tick_text};

/// The height of a row where there is room.
const ROW: f64 = 88.0;
const TITLE: f64 = 34.0;
const AXIS: f64 = 26.0;

/// One row.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) colour: RGBColor,
    /// Lengths from the left and how solid each is, 0 to 1. Empty where there is no value.
    pub(super) parts: Vec<(f64, f64)>,
    /// Least and most over the repetitions, where they differ.
    pub(super) whisker: Option<(f64, f64)>,
    /// What stands behind the bar.
    pub(super) value: String,
    /// The value is bad news.
    pub(super) alarm: bool,
}

/// A panel: a title, and bars on a scale of its own.
pub(super) struct Panel<'a> {
    pub(super) title: &'a str,
    pub(super) bars: Vec<Bar>,
    /// The values are whole: no ticks between.
    pub(super) whole: bool,
}

impl Bar {
    fn total(&self) -> f64 {
        self.parts.iter().map(|(length, _)| length).sum()
    }

    /// Where the bar or its whisker ends.
    fn reach(&self) -> f64 {
        self.whisker.map_or(0.0, |(_, most)| most).max(self.total())
    }
}

impl Panel<'_> {
    /// Draws the panel between two corners of the sheet; rows shrink where there are many.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, (left, top): Point, (right, bottom): Point) -> Drawn {
        let kind = Type::of(17.0).bold();
        canvas.text(&canvas.fit(self.title, right - left, kind), (left, top + 12.0), kind)?;
        let row = ((bottom - top - TITLE - AXIS) / self.bars.len().max(1) as f64).min(ROW);
        let name_kind = Type::of((row * 0.42).clamp(9.0, 16.0)).bold().side(Side::Right);
        let value_kind = Type::of((row * 0.42).clamp(9.0, 15.5)).bold();
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        let names = widest(&mut self.bars.iter().map(|bar| canvas.measure(&bar.name, name_kind))).min((right - left) * 0.3);
        let values = widest(&mut self.bars.iter().map(|bar| canvas.measure(&bar.value, value_kind)));
        let from = left + names + 12.0;
        let to = (right - values - 14.0).max(from + 40.0);
        let scale = Scale::new(self.bars.iter().map(Bar::reach).fold(0.0, f64::max), (from, to), Spread::Linear);
        let end = top + TITLE + row * self.bars.len() as f64;
        self.axis(canvas, &scale, (top + TITLE, end))?;
        for (i, bar) in self.bars.iter().enumerate() {
            let middle = top + TITLE + (i as f64 + 0.5) * row;
            let kind = canvas.shrink(&bar.name, names, name_kind);
            canvas.text(&canvas.fit(&bar.name, names, kind), (from - 8.0, middle), kind.ink(bar.colour))?;
            bar.draw(canvas, &scale, middle, row * 0.31)?;
            let ink = if bar.alarm { ALARM } else { TEXT };
            canvas.label(&bar.value, (scale.place(bar.reach()) + 9.0, middle), value_kind.ink(ink))?;
        }
        canvas.line(&[(from, top + TITLE), (from, end)], TEXT, 1.0, &[])
    }

    fn axis(&self, canvas: &Canvas<'_>, scale: &Scale, (top, bottom): Point) -> Drawn {
        let ticks: Vec<f64> =
            scale.ticks(scale.length() / 8.0).into_iter().filter(|tick| !self.whole || tick.fract() == 0.0).collect();
        for tick in &ticks {
            let x = scale.place(*tick);
            canvas.line(&[(x, top), (x, bottom)], GRID, 0.5, &[])?;
            let kind = Type::of(12.5).ink(QUIET).side(Side::Middle);
            canvas.text(&tick_text(*tick, &ticks), (x, bottom + 13.0), kind)?;
        }
        Ok(())
    }
}

impl Bar {
    fn draw(&self, canvas: &Canvas<'_>, scale: &Scale, middle: f64, half: f64) -> Drawn {
        let mut sum = 0.0;
        for (length, solid) in self.parts.iter().filter(|(length, _)| *length > 0.0) {
            let (from, to) = (scale.place(sum), scale.place(sum + length));
            canvas.rect((from, middle - half), (to, middle + half), self.colour.mix(*solid))?;
            sum += length;
        }
        if let Some((least, most)) = self.whisker {
            let (least, most) = (scale.place(least), scale.place(most));
            canvas.line(&[(least, middle), (most, middle)], TEXT, 1.5, &[])?;
            for end in [least, most] {
                canvas.line(&[(end, middle - half * 0.5), (end, middle + half * 0.5)], TEXT, 1.5, &[])?;
            }
        }
        Ok(())
    }
}
