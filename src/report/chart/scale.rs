//! Values to places on the sheet, and round ticks.

/// How values are spread over a span of the sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spread {
    /// Evenly.
    Linear,
    /// By square root: small values stay legible beside one that dwarfs them, and zero is still zero.
    Root,
}

/// A mapping from `[0, most]` to a span of the sheet, which may run either way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    most: f64,
    from: f64,
    to: f64,
    spread: Spread,
}

impl Scale {
    /// Zero at `from`, `most` at `to`.
    pub(super) fn new(most: f64, (from, to): (f64, f64), spread: Spread) -> Scale {
        Scale { most: if most > 0.0 && most.is_finite() { most } else { 1.0 }, from, to, spread }
    }

    /// How long the span is.
    pub(super) fn length(&self) -> f64 {
        (self.to - self.from).abs()
    }

    /// Where a value stands; values outside stand at the edge.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (value / self.most).clamp(0.0, 1.0);
        let share = match self.spread {
            Spread::Linear => share,
            Spread::Root => share.sqrt(),
        };
        self.from + (self.to - self.from) * share
    }

    /// Round values from zero on, at least `gap` units apart on the sheet.
    pub(super) fn ticks(&self, gap: f64) -> Vec<f64> {
        match self.spread {
            Spread::Linear => self.even_ticks(gap),
            Spread::Root => self.root_ticks(gap),
        }
    }

    fn even_ticks(&self, gap: f64) -> Vec<f64> {
        let least = gap / self.length().max(1.0) * self.most;
        let step = round_up(least);
        (0..=200).map(|i| f64::from(i) * step).take_while(|tick| *tick <= self.most * 1.000_001).collect()
    }

    /// From the top down 1, 2 and 5 times the powers of ten, where there is room.
    fn root_ticks(&self, gap: f64) -> Vec<f64> {
        let mut ticks = Vec::new();
        let mut last = f64::INFINITY;
        let power = self.most.log10().floor() as i32;
        for exponent in (power - 6..=power).rev() {
            for factor in [5.0, 2.0, 1.0] {
                let tick = factor * 10_f64.powi(exponent);
                let place = (self.place(tick) - self.from).abs();
                if tick <= self.most && last - place >= gap && place >= gap {
                    ticks.push(tick);
                    last = place;
                }
            }
        }
        ticks.push(0.0);
        ticks.reverse();
        ticks
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `value`.
pub(super) fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powi(value.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|round| *round >= value * 0.999_999).unwrap_or(value)
}

/// A tick as text, with as many decimals as its step needs.
pub(super) fn tick_text(tick: f64, ticks: &[f64]) -> String {
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if step >= 0.999 {
        crate::report::figure::count(tick.round())
    } else {
        format!("{tick:.*}", (-step.log10()).ceil().clamp(0.0, 6.0) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_apart() {
        let linear = Scale::new(17.0, (0.0, 400.0), Spread::Linear);
        assert_eq!(linear.ticks(60.0), [0.0, 5.0, 10.0, 15.0]);
        let root = Scale::new(9_000.0, (200.0, 0.0), Spread::Root);
        let ticks = root.ticks(24.0);
        assert_eq!(ticks, [0.0, 200.0, 1_000.0, 2_000.0, 5_000.0]);
        assert_eq!(tick_text(1_000.0, &ticks), "1,000");
        assert_eq!(tick_text(0.5, &[0.0, 0.5, 1.0]), "0.5");
    }

    #[test]
    fn nothing_to_show_still_has_a_scale() {
        for most in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            for spread in [Spread::Linear, Spread::Root] {
                let scale = Scale::new(most, (10.0, 20.0), spread);
                assert!(scale.place(0.0) == 10.0 && !scale.ticks(5.0).is_empty());
            }
        }
    }
}
