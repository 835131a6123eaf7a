//! A sheet to draw on, in logical units from the top left; pixels are half as large.
//!
//! Two pitfalls of plotters are met here. A bitmap places glyphs at whole pixels, which makes uneven gaps at small sizes, so
//! everything is drawn at 2x. And a font looked up before it is registered stays missing, so no style is made before
//! [`Canvas::create`] has registered ours; without a font of our own a bare machine has none at all.

use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

/// Pixels per logical unit.
const ZOOM: f64 = 2.0;
const FONT: &str = "simq";

/// The colour of text and axes.
pub(super) const TEXT: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// The colour of what explains.
pub(super) const QUIET: RGBColor = RGBColor(0x66, 0x66, 0x66);
/// The colour of grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);
/// The colour of alarm: vermillion, as good as black for those who see no red.
pub(super) const ALARM: RGBColor = RGBColor(0xB5, 0x3A, 0x00);
/// Policies that have no colour of their own left.
const OTHER: RGBColor = RGBColor(0x8A, 0x8A, 0x8A);

/// Okabe and Ito's colours, which people of all kinds of sight tell apart; without the yellow, too pale on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x00, 0x00, 0x00),
];

/// A dash pattern: on, off, on, off …; empty is solid.
pub(super) type Dash = &'static [f64];

const DASHES: [Dash; 7] =
    [&[], &[9.0, 4.0], &[2.5, 3.5], &[12.0, 3.0, 2.5, 3.0], &[5.0, 3.0], &[16.0, 4.0], &[2.5, 3.0, 2.5, 8.0]];

/// The colour of the policy at this place of the scenario.
pub(super) fn colour(index: usize) -> RGBColor {
    COLOURS.get(index).copied().unwrap_or(OTHER)
}

/// The dash of the policy at this place: the second cue, for print and for all kinds of sight.
pub(super) fn dash(index: usize) -> Dash {
    DASHES[index % DASHES.len()]
}

/// A drawing error, in plotters' words.
#[derive(Debug)]
pub(super) struct Reason(pub(super) String);

/// What a drawing function returns.
pub(super) type Drawn = Result<(), Reason>;

/// A point in logical units.
pub(super) type Point = (f64, f64);

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// It begins there.
    Left,
    /// It is centred there.
    Middle,
    /// It ends there.
    Right,
}

/// A kind of type: size in logical units, weight and colour. Vertically it is centred on its point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    size: f64,
    bold: bool,
    ink: RGBColor,
    side: Side,
}

impl Type {
    /// Plain dark type that begins at its point.
    pub(super) fn of(size: f64) -> Type {
        Type { size, bold: false, ink: TEXT, side: Side::Left }
    }

    /// The same, bold.
    pub(super) fn bold(self) -> Type {
        Type { bold: true, ..self }
    }

    /// The same in this colour.
    pub(super) fn ink(self, ink: RGBColor) -> Type {
        Type { ink, ..self }
    }

    /// The same at another side of its point.
    pub(super) fn side(self, side: Side) -> Type {
        Type { side, ..self }
    }

    fn style(self) -> TextStyle<'static> {
        let weight = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        // The tuple: a style set on a font afterwards keeps the regular face.
        let across = match self.side {
            Side::Left => HPos::Left,
            Side::Middle => HPos::Center,
            Side::Right => HPos::Right,
        };
        let mut style = TextStyle::from((FONT, self.size * ZOOM, weight)).pos(Pos::new(across, VPos::Center));
        style.color = self.ink.to_backend_color();
        style
    }
}

/// The sheet.
pub(super) struct Canvas<'a> {
    area: DrawingArea<BitMapBackend<'a>, Shift>,
    /// Its width in logical units.
    pub(super) width: f64,
    /// Its height in logical units.
    pub(super) height: f64,
}

impl<'a> Canvas<'a> {
    /// A white sheet of this size in logical units, to be saved at `path`.
    pub(super) fn create(path: &'a Path, (width, height): (u32, u32)) -> Result<Canvas<'a>, Reason> {
        static FONTS: Once = Once::new();
        FONTS.call_once(|| {
            for (weight, bytes) in [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())] {
                // It can only fail on bytes that are no font; then drawing text says so.
                let _ = register_font(FONT, weight, bytes);
            }
        });
        let pixels = |units: u32| (f64::from(units) * ZOOM) as u32;
        let area = BitMapBackend::new(path, (pixels(width), pixels(height))).into_drawing_area();
        area.fill(&WHITE).map_err(reason)?;
        Ok(Canvas { area, width: f64::from(width), height: f64::from(height) })
    }

    /// Writes the file.
    pub(super) fn save(&self) -> Drawn {
        self.area.present().map_err(reason)
    }

    /// A filled rectangle between two corners. A thin one stays visible: at least one pixel.
    pub(super) fn rect(&self, a: Point, b: Point, ink: impl Into<RGBAColor>) -> Drawn {
        let (from, to) = (pixel((a.0.min(b.0), a.1.min(b.1))), pixel((a.0.max(b.0), a.1.max(b.1))));
        let to = (to.0.max(from.0 + 1), to.1.max(from.1 + 1));
        self.area.draw(&Rectangle::new([from, to], ink.into().filled())).map_err(reason)
    }

    /// A line through points.
    pub(super) fn line(&self, points: &[Point], ink: impl Into<RGBAColor>, width: f64, dash: Dash) -> Drawn {
        let style = ink.into().stroke_width(((width * ZOOM).round() as u32).max(1));
        for piece in dashes(points, dash) {
            let mut piece: Vec<(i32, i32)> = piece.into_iter().map(pixel).collect();
            piece.dedup();
            self.area.draw(&PathElement::new(piece, style)).map_err(reason)?;
        }
        Ok(())
    }

    /// A filled dot with a white rim, so that it stands out of its line.
    pub(super) fn dot(&self, at: Point, radius: f64, ink: RGBColor) -> Drawn {
        let circle = |radius: f64, ink: RGBColor| {
            self.area.draw(&Circle::new(pixel(at), (radius * ZOOM).round() as i32, ink.filled())).map_err(reason)
        };
        circle(radius + 1.5, WHITE)?;
        circle(radius, ink)
    }

    /// A line of text.
    pub(super) fn text(&self, text: &str, at: Point, kind: Type) -> Drawn {
        self.area.draw(&Text::new(text.to_owned(), pixel(at), kind.style())).map_err(reason)
    }

    /// A line of text on a pale ground, where it would otherwise stand on lines.
    pub(super) fn label(&self, text: &str, at: Point, kind: Type) -> Drawn {
        let width = self.measure(text, kind);
        let left = match kind.side {
            Side::Left => at.0,
            Side::Middle => at.0 - width / 2.0,
            Side::Right => at.0 - width,
        };
        let half = kind.size * 0.6;
        self.rect((left - 2.0, at.1 - half), (left + width + 2.0, at.1 + half), WHITE.mix(0.8))?;
        self.text(text, at, kind)
    }

    /// How wide a text is, in logical units.
    pub(super) fn measure(&self, text: &str, kind: Type) -> f64 {
        self.area.estimate_text_size(text, &kind.style()).map_or(0.0, |(width, _)| f64::from(width) / ZOOM)
    }

    /// The kind of type, smaller where the text would be wider than `width`, by a quarter at most.
    pub(super) fn shrink(&self, text: &str, width: f64, kind: Type) -> Type {
        let ratio = width / self.measure(text, kind).max(1.0);
        Type { size: kind.size * ratio.clamp(0.75, 1.0), ..kind }
    }

    /// The text, cut with an ellipsis where it is wider than `width`.
    pub(super) fn fit(&self, text: &str, width: f64, kind: Type) -> String {
        if self.measure(text, kind) <= width {
            return text.to_owned();
        }
        let mut letters: Vec<char> = text.chars().collect();
        while letters.pop().is_some() {
            let cut: String = letters.iter().collect::<String>().trim_end().to_owned() + "…";
            if self.measure(&cut, kind) <= width {
                return cut;
            }
        }
        String::new()
    }
}

fn pixel((x, y): Point) -> (i32, i32) {
    ((x * ZOOM).round() as i32, (y * ZOOM).round() as i32)
}

fn reason(error: impl std::fmt::Display) -> Reason {
    Reason(error.to_string())
}

/// Cuts a line into its dashes; the pattern runs on around corners.
fn dashes(points: &[Point], dash: Dash) -> Vec<Vec<Point>> {
    let Some(&start) = points.first() else { return Vec::new() };
    if dash.is_empty() {
        return vec![points.to_vec()];
    }
    let mut pieces = vec![vec![start]];
    let (mut place, mut left, mut on) = (0, dash[0], true);
    for pair in points.windows(2) {
        let ((mut x, mut y), (to_x, to_y)) = (pair[0], pair[1]);
        let mut rest = (to_x - x).hypot(to_y - y);
        while rest > left {
            let share = left / rest;
            (x, y) = (x + (to_x - x) * share, y + (to_y - y) * share);
            rest -= left;
            if on {
                pieces.last_mut().expect("there is a first").push((x, y));
            } else {
                pieces.push(vec![(x, y)]);
            }
            place = (place + 1) % dash.len();
            (left, on) = (dash[place].max(0.5), !on);
        }
        left -= rest;
        if on {
            pieces.last_mut().expect("there is a first").push((to_x, to_y));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_run_on_around_corners() {
        let pieces = dashes(&[(0.0, 0.0), (3.0, 0.0), (3.0, 10.0)], &[4.0, 2.0]);
        assert_eq!(
            pieces,
            [vec![(0.0, 0.0), (3.0, 0.0), (3.0, 1.0)], vec![(3.0, 3.0), (3.0, 7.0)], vec![(3.0, 9.0), (3.0, 10.0)]]
        );
        assert_eq!(dashes(&[], &[1.0]).len(), 0);
    }

    #[test]
    fn policies_beyond_the_seventh_share_one_grey() {
        assert_eq!(colour(7), colour(40));
        assert!((0..7).all(|i| colour(i) != OTHER));
    }
}
