//! The delays that policies can give: per retry the interval as a bar and the mean as a dot, on a logarithmic scale.

use std::path::Path;

use plotters::style::Color;

use super::canvas::{Canvas, Drawn, GRID, QUIET, Side, TEXT, Type, colour};
use crate::report::{Delays, Error};

const SIZE: (u32, u32) = (1200, 640);
const LEFT: f64 = 96.0;
const TOP: f64 = 96.0;
const BELOW: f64 = 60.0;
const MARGIN: f64 = 24.0;

/// Draws the policies into a PNG file.
///
/// # Errors
/// If the file can't be drawn or written.
pub fn save_delays(policies: &[Delays], path: &Path) -> Result<(), Error> {
    let drawn = Canvas::create(path, SIZE).and_then(|canvas| {
        draw(policies, &canvas)?;
        canvas.save()
    });
    drawn.map_err(|reason| Error::Draw { chart: path.display().to_string(), reason: reason.0 })
}

fn draw(policies: &[Delays], canvas: &Canvas<'_>) -> Drawn {
    header(policies, canvas)?;
    let scale = Log::over(policies, canvas.height - BELOW, TOP);
    for (secs, name) in TICKS.iter().filter(|(secs, _)| *secs >= scale.least && *secs <= scale.most) {
        let y = scale.place(*secs);
        canvas.line(&[(LEFT, y), (canvas.width - MARGIN, y)], GRID, 0.5, &[])?;
        canvas.text(name, (LEFT - 8.0, y), Type::of(13.0).side(Side::Right))?;
    }
    let retries = policies.iter().map(|policy| policy.intervals.len()).max().unwrap_or(0).max(1);
    let slot = (canvas.width - MARGIN - LEFT) / retries as f64;
    for n in 0..retries {
        let middle = LEFT + (n as f64 + 0.5) * slot;
        if retries <= 40 || (n + 1) % (retries / 20) == 0 {
            let kind = Type::of(13.0).side(Side::Middle);
            canvas.text(&(n + 1).to_string(), (middle, canvas.height - BELOW + 15.0), kind)?;
        }
        let wide = (slot * 0.8 / policies.len().max(1) as f64).min(34.0);
        for (i, policy) in policies.iter().enumerate() {
            let Some(interval) = policy.intervals.get(n) else { continue };
            let centre = middle + (i as f64 - (policies.len() as f64 - 1.0) / 2.0) * wide;
            let beyond = policy.retries.is_some_and(|retries| n as u32 >= retries);
            let ink = colour(i).mix(if beyond { 0.25 } else { 0.75 });
            let (low, high) = (scale.place(interval.0), scale.place(interval.1));
            canvas.rect((centre - wide * 0.36, low + 1.0), (centre + wide * 0.36, high - 1.0), ink)?;
            canvas.dot((centre, scale.place(interval.2)), 3.0, colour(i))?;
        }
    }
    canvas.line(&[(LEFT, canvas.height - BELOW), (canvas.width - MARGIN, canvas.height - BELOW)], TEXT, 1.0, &[])?;
    let kind = Type::of(14.0).ink(QUIET).side(Side::Middle);
    canvas.text("retry; pale: beyond the default limit", (f64::midpoint(LEFT, canvas.width), canvas.height - BELOW + 38.0), kind)
}

fn header(policies: &[Delays], canvas: &Canvas<'_>) -> Drawn {
    let room = canvas.width - 2.0 * MARGIN;
    let kind = Type::of(25.0).bold();
    canvas.text(&canvas.fit("How long each retry waits: shortest to longest, and the mean", room, kind), (MARGIN, 30.0), kind)?;
    let mut x = MARGIN;
    for (i, policy) in policies.iter().enumerate() {
        let kind = Type::of(15.0).bold().ink(colour(i));
        let name = canvas.fit(&policy.name, (canvas.width - MARGIN - x).max(0.0), kind);
        canvas.text(&name, (x, 62.0), kind)?;
        x += canvas.measure(&name, kind) + 22.0;
    }
    Ok(())
}

/// Times that people know.
const TICKS: [(f64, &str); 15] = [
    (0.001, "1 ms"),
    (0.01, "10 ms"),
    (0.1, "100 ms"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (21_600.0, "6 h"),
    (86_400.0, "1 d"),
    (604_800.0, "1 week"),
    (2_592_000.0, "30 d"),
    (31_557_600.0, "1 y"),
    (315_576_000.0, "10 y"),
    (3_155_760_000.0, "100 y"),
];

/// A logarithmic scale; what is at or below its least value stands on its foot.
struct Log {
    least: f64,
    most: f64,
    foot: f64,
    head: f64,
}

impl Log {
    fn over(policies: &[Delays], foot: f64, head: f64) -> Log {
        let intervals = || policies.iter().flat_map(|policy| &policy.intervals);
        let most = intervals().map(|interval| interval.1).fold(1e-3, f64::max);
        let least = intervals().flat_map(|interval| [interval.0, interval.2]).filter(|secs| *secs > 0.0).fold(most, f64::min);
        Log { least: (least / 1.6).max(most / 1e10), most: most * 1.25, foot, head }
    }

    fn place(&self, secs: f64) -> f64 {
        let share = if secs > self.least { (secs / self.least).ln() / (self.most / self.least).ln() } else { 0.0 };
        self.foot + (self.head - self.foot) * share.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_stands_on_the_foot_and_the_longest_near_the_head() {
        let policy = Delays { name: "a".into(), intervals: vec![(0.0, 0.0, 0.0), (1.0, 100.0, 50.0)], retries: None };
        let scale = Log::over(&[policy], 500.0, 100.0);
        assert_eq!(scale.place(0.0), 500.0);
        assert!(scale.place(100.0) > 100.0 && scale.place(100.0) < 140.0);
        assert!(scale.place(1.0) < 500.0);
    }
}
