//! How chance plays on a wait.
//!
//! Every jitter without a memory is two factors and a width: `x · U[p, q) + U · (w₀ + w₁ · n)`. The names people use are rows
//! of that table, and [`Jitter::row`] has them all. Five kinds are not rows, because they build on earlier draws or on a
//! fault that is worth showing.
//!
//! ```text
//!              p      q      w                                  p      q      w
//! none         1      1      0            upward s              1      1+s    0
//! full         0      1      0            downward s            1−s    1      0
//! equal        ½      1      0            additive w            1      1      w
//! proportional 1−s    1+s    0            growing w             1      1      w·n
//! ```

use std::time::Duration;

use serde::Serialize;

use super::backoff::{float, scaled};

/// How a wait is randomised. `backoff` below is the curve's value for this retry after its cap.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Jitter {
    /// The wait itself: jobs that failed together come back together.
    None,
    /// Full jitter: a delay drawn uniformly from `[0, backoff)`.
    ///
    /// The mean delay is half of `backoff` and the first retry may come at once. Spreads a herd best per unit of delay.
    ///
    /// Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    Full,
    /// Equal jitter: half of `backoff`, and a draw from `[0, backoff / 2)` on top. Keeps some distance in every case.
    ///
    /// Source: as for [`Jitter::Full`].
    Equal,
    /// Proportional jitter: drawn uniformly from `[backoff · (1 − share), backoff · (1 + share))`.
    Proportional {
        /// Half the relative width, 0 to 1: 0.1 is ±10 %.
        share: f64,
    },
    /// Additive jitter: `backoff` and a draw from `[0, spread)` on top. Its effect fades as the curve grows.
    Additive {
        /// The width.
        spread: Duration,
    },
    /// Any row of the table.
    Row(Row),
    /// Decorrelated jitter: `U[base, 3 · last)`, where `last` is the delay before this attempt, `base` at first. Grows by the
    /// draws themselves, so the curve's factor plays no part.
    ///
    /// Source: as for [`Jitter::Full`], its `Decorr`.
    Decorrelated {
        /// The cap bounds the draw (Polly.Contrib). Otherwise it cuts what was drawn, and mass gathers on it (the article).
        bound: bool,
        /// Draws from `[last, 3 · last)`: it never falls again (Finagle).
        rising: bool,
    },
    /// A point drawn uniformly per step of the line of elapsed time, `F(t) = 2^t · tanh(√(4t))`: the delay is
    /// `base / 1.4 · (F(n − 1 + U) − F(n − 2 + U'))`, where U' is the draw before. No two delays in a row are independent.
    ///
    /// Source: Polly 8.7, `src/Polly.Core/Retry/RetryHelper.cs`.
    Timeline,
    /// `last · 2^(n − 1) · U`: each draw is built on the draw before, so it outgrows any exponential until the cap holds it.
    ///
    /// Source: Finagle 24.5, `Backoff.scala`, `ExponentialJittered`.
    Compounding,
    /// Up to `share` on top, of whole seconds and of the rest apart, the whole seconds cut: a wait of 1 s gets none.
    ///
    /// Source: tower 0.5.3, `tower/src/retry/backoff.rs`; linkerd2-proxy, `linkerd/exp-backoff/src/lib.rs`.
    Split {
        /// The share, 0 to 1.
        share: f64,
        /// What a whole second is; a scaled time has another.
        second: Duration,
        /// Every job meets the same draw, as where a generator is cloned into each request (tower).
        cloned: bool,
    },
    /// The curve's value before `plus` times a draw from `[low, high)` that is made once for all jobs, to
    /// the thousandth; then `row` plays on what came of it.
    ///
    /// Source: MassTransit 8.5, `RetryPolicies/ExponentialRetryPolicy.cs`.
    Frozen {
        /// The least factor.
        low: f64,
        /// The factor that is not reached.
        high: f64,
        /// What plays on each use.
        row: Row,
    },
    /// The draws of all retries are made at the start and sorted; retry n takes the n-th.
    ///
    /// Source: node-retry 0.13, `lib/retry.js`, with `randomize`.
    Sorted {
        /// What each is drawn by.
        row: Row,
    },
}

/// A jitter without a memory: `x · U[p, q) + U · (w₀ + w₁ · n)`, one draw for both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The least factor.
    pub p: f64,
    /// The greatest factor, not below `p`.
    pub q: f64,
    /// A width that does not grow.
    pub w0: Duration,
    /// A width that grows with each retry.
    pub w1: Duration,
    /// Whether the upper end itself may be drawn. Says what a source says; in 53 bits it makes no difference.
    pub closed: bool,
    /// Other factors at the cap.
    pub at_cap: Option<AtCap>,
}

/// What becomes of jitter at the cap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtCap {
    /// The least factor on the cap.
    pub p: f64,
    /// The greatest.
    pub q: f64,
    /// It is the drawn delay that must exceed the cap (Dramatiq), not the curve (AWS SDK for Go v2).
    pub drawn: bool,
}

impl Row {
    /// No jitter.
    pub const NONE: Row = Row::of(1.0, 1.0);

    /// Two factors, upper end open.
    pub const fn of(p: f64, q: f64) -> Row {
        Row { p, q, w0: Duration::ZERO, w1: Duration::ZERO, closed: false, at_cap: None }
    }

    /// The ends of what can be drawn for a wait of `x` nanoseconds before retry `n`.
    pub(super) fn ends(&self, x: f64, n: u32) -> (f64, f64) {
        (x * self.p, x * self.q + float(self.w0) + float(self.w1) * f64::from(n))
    }

    fn scaled(self, factor: f64) -> Row {
        Row { w0: scaled(self.w0, factor), w1: scaled(self.w1, factor), ..self }
    }
}

impl Jitter {
    /// The row that it is, or that plays last.
    pub fn row(&self) -> Row {
        match *self {
            Jitter::Full => Row::of(0.0, 1.0),
            Jitter::Equal => Row::of(0.5, 1.0),
            Jitter::Proportional { share } => Row::of(1.0 - share, 1.0 + share),
            Jitter::Additive { spread } => Row { w0: spread, ..Row::NONE },
            Jitter::Row(row) | Jitter::Frozen { row, .. } | Jitter::Sorted { row } => row,
            Jitter::Split { share, .. } => Row::of(1.0, 1.0 + share),
            Jitter::None | Jitter::Decorrelated { .. } | Jitter::Timeline | Jitter::Compounding => Row::NONE,
        }
    }

    /// Whether a delay depends on nothing but the retry's number and one draw of its own.
    pub fn is_stateless(&self) -> bool {
        !matches!(
            self,
            Jitter::Decorrelated { .. } | Jitter::Timeline | Jitter::Compounding | Jitter::Frozen { .. } | Jitter::Sorted { .. }
        )
    }

    /// Its name, as in a list.
    pub fn name(&self) -> String {
        let row = match self {
            Jitter::Decorrelated { bound: false, .. } => return "decorrelated".into(),
            Jitter::Decorrelated { .. } => return "decorrelated, bound".into(),
            Jitter::Timeline => return "timeline".into(),
            Jitter::Compounding => return "compounding".into(),
            Jitter::Split { cloned: true, .. } => return "split, cloned".into(),
            Jitter::Split { .. } => return "split".into(),
            Jitter::Frozen { .. } => return "frozen".into(),
            Jitter::Sorted { .. } => return "sorted".into(),
            _ => self.row(),
        };
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        match (row.p, row.q) {
            (1.0, 1.0) if !row.w1.is_zero() => format!("+{}s·n", row.w1.as_secs_f64()),
            (1.0, 1.0) if !row.w0.is_zero() => format!("+{}s", row.w0.as_secs_f64()),
            (1.0, 1.0) => "none".into(),
            (0.0, 1.0) => "full".into(),
            (0.5, 1.0) => "equal".into(),
            (1.0, q) => format!("+{} %", percent(q - 1.0)),
            (p, 1.0) => format!("−{} %", percent(1.0 - p)),
            (p, q) if (p + q - 2.0).abs() < 1e-9 => format!("±{} %", percent(q - 1.0)),
            (p, q) => format!("×{p}–{q}"),
        }
    }

    pub(super) fn scaled(&self, factor: f64) -> Jitter {
        match self {
            Jitter::Additive { spread } => Jitter::Additive { spread: scaled(*spread, factor) },
            Jitter::Row(row) => Jitter::Row(row.scaled(factor)),
            Jitter::Split { share, second, cloned } => {
                Jitter::Split { share: *share, second: scaled(*second, factor), cloned: *cloned }
            }
            Jitter::Frozen { low, high, row } => Jitter::Frozen { low: *low, high: *high, row: row.scaled(factor) },
            Jitter::Sorted { row } => Jitter::Sorted { row: row.scaled(factor) },
            other => other.clone(),
        }
    }
}

/// Polly's line of elapsed time, in units of its base over 1.4.
pub(super) fn timeline(t: f64) -> f64 {
    t.exp2() * (4.0 * t).sqrt().tanh()
}
