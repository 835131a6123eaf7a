//! Which delays a policy can give, exactly: per retry the interval, whether its ends can be drawn, the mean and the grain.
//!
//! Worked out from the policy, not sampled: what `simq policies` prints, and what the tests hold samples against. A delay that builds on
//! earlier draws has the interval over all histories; its mean has no closed form and is taken from two thousand of them, always the same.

use std::time::Duration;

use serde::Serialize;

use super::Policy;
use super::backoff::{Backoff, float, saturate};
use super::clamp::{Ends, Order};
use super::delay::{First, Turn, frozen, split};
use super::expression::Question;
use super::jitter::{Jitter, Row, timeline};
use crate::job::JobId;
use crate::rng::{Seed, Stream};

/// What the delay before one retry can be. In seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The retry, from 1.
    pub n: u32,
    /// The shortest.
    pub low: f64,
    /// The longest.
    pub high: f64,
    /// The shortest is approached, but never drawn.
    pub low_open: bool,
    /// The longest is approached, but never drawn.
    pub high_open: bool,
    /// The mean.
    pub mean: f64,
    /// Delays are whole numbers of this above the shortest; 0 for any length.
    pub grain: f64,
    /// The share of delays that are exactly the cap, where the cap comes after jitter.
    pub on_cap: f64,
}

/// Histories that a mean without a closed form is taken from.
const HISTORIES: u64 = 2000;
/// Points that an integral is taken at.
const POINTS: u32 = 512;

/// The delays before the first `retries` retries; fewer where the schedule itself ends.
pub fn cells(policy: &Policy, retries: u32) -> Vec<Cell> {
    let retries = retries.min(policy.backoff.last_retry());
    let means = simulated_means(policy, retries);
    (1..=retries)
        .map(|n| {
            let span = span(policy, n);
            let mean = means.get(n as usize - 1).copied().unwrap_or(span.mean);
            Cell {
                n,
                low: secs(span.low),
                high: secs(span.high),
                low_open: span.low_open,
                high_open: span.high_open,
                mean: secs(mean),
                grain: span.unit / 1e9,
                on_cap: span.on_cap,
            }
        })
        .collect()
}

/// The least and the most that the first `retries` delays together can come to, in seconds.
pub fn total(policy: &Policy, cells: &[Cell]) -> (f64, f64) {
    let sum = |end: fn(&Cell) -> f64| cells.iter().map(end).sum::<f64>();
    if policy.jitter == Jitter::Timeline && policy.cap.is_none() {
        // Each delay ends where the next begins: all of them together are one draw.
        let (n, unit) = (cells.len() as f64, policy.backoff.base().as_secs_f64() / 1.4);
        let least = if cells.is_empty() { 0.0 } else { unit * timeline(n - 1.0) };
        return (least, unit * timeline(n));
    }
    (sum(|cell| cell.low), sum(|cell| cell.high))
}

/// The relative spread of a policy's first retry that has one to speak of: the width of its interval over its mean, 0 to 2.
/// It is the number that says how fast a herd disperses.
pub fn relative_spread(cell: &Cell) -> f64 {
    let middle = f64::midpoint(cell.low, cell.high);
    if middle > 0.0 { (cell.high - cell.low) / middle } else { 0.0 }
}

/// The longest delay before retry `n`, in nanoseconds.
pub(super) fn reach(policy: &Policy, n: u32) -> f64 {
    span(policy, n).high
}

fn secs(nanos: f64) -> f64 {
    nanos.min(u64::MAX as f64) / 1e9
}

/// An interval in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    low: f64,
    high: f64,
    low_open: bool,
    high_open: bool,
    mean: f64,
    unit: f64,
    on_cap: f64,
}

impl Span {
    fn exact(value: f64) -> Span {
        Span { low: value, high: value, low_open: false, high_open: false, mean: value, unit: 0.0, on_cap: 0.0 }
    }

    /// Any value of `[low, high)`.
    fn open(low: f64, high: f64) -> Span {
        let high_open = high > low;
        Span { low, high, low_open: false, high_open, mean: f64::midpoint(low, high), unit: 0.0, on_cap: 0.0 }
    }
}

fn span(policy: &Policy, n: u32) -> Span {
    let most = policy.most();
    if n <= 1 && policy.first != First::Scheduled {
        let exact = policy.finish(policy.capped(policy.curve(1, most, 1.0)));
        return Span::exact(if policy.first == First::Free { 0.0 } else { exact });
    }
    match &policy.jitter {
        Jitter::Decorrelated { bound, rising } => decorrelated(policy, n, *bound, *rising),
        Jitter::Timeline => on_timeline(policy, n),
        Jitter::Compounding => compounding(policy, n),
        Jitter::Split { share, second, .. } => {
            split_span(policy, policy.capped(policy.curve(n, most, 1.0)), *share, float(*second))
        }
        Jitter::Frozen { low, high, row } => frozen_span(policy, n, (*low, *high), row),
        Jitter::Sorted { row } => sorted(policy, n, row),
        plain => match &policy.backoff {
            Backoff::Expression { delay } => {
                let (low, high) = delay.corners(Question { n, retries: most, last: None });
                let pads = |x: f64| policy.padded(x);
                between(policy, plain_span(policy, pads(low), &plain.row(), n), plain_span(policy, pads(high), &plain.row(), n))
            }
            _ => plain_span(policy, policy.curve(n, most, 1.0), &plain.row(), n),
        },
    }
}

/// What a row makes of the wait `x`.
fn plain_span(policy: &Policy, x: f64, row: &Row, n: u32) -> Span {
    let (low, high, unit) = policy.interval(x, row, n);
    let cap = policy.cap.map_or(f64::INFINITY, float);
    if let Some(at) = row.at_cap {
        let there = Span { high_open: !row.closed && at.q > at.p, ..Span::open(cap * at.p, cap * at.q) };
        if (at.drawn && low > cap) || (!at.drawn && x >= cap) {
            return finished(policy, there, row);
        }
        if at.drawn && high > cap {
            let over = (high - cap) / (high - low);
            let mean = (1.0 - over) * f64::midpoint(low, cap) + over * there.mean;
            let mixed = Span { low: low.min(there.low), high: cap.max(there.high), high_open: false, mean, ..there };
            return Span { unit, ..finished(policy, mixed, row) };
        }
    }
    if !high.is_finite() {
        return finished(policy, Span::open(if low.is_finite() { low } else { high }, high), row);
    }
    if high <= low {
        return finished(policy, Span { unit, ..Span::exact(policy.grain.pick((low, high), unit, 0.0)) }, row);
    }
    if unit <= 0.0 {
        return finished(policy, Span { high_open: !row.closed, ..Span::open(low, high) }, row);
    }
    let last = low + unit * (policy.grain.steps(low, high, unit) - 1.0);
    let cut = policy.grain.ends == Ends::Cut;
    let told = if cut { high } else { last };
    let mean = f64::midpoint(low, last);
    finished(policy, Span { high: told, high_open: cut && !row.closed, mean, unit, ..Span::open(low, last) }, row)
}

/// Pad, hard cap and floor, and what they do to the mean.
fn finished(policy: &Policy, span: Span, row: &Row) -> Span {
    let hard = policy.order != Order::CapFirst;
    let (cap, pad) = (policy.cap.map_or(f64::INFINITY, float), float(policy.pad));
    let (low, high) = (span.low + pad, span.high + pad);
    let on_cap = if !matches!(policy.order, Order::CapLast | Order::CapBoth) || high < cap || (high == cap && low < cap) {
        0.0
    } else if low >= cap {
        1.0
    } else {
        (high - cap) / (high - low)
    };
    let floor = policy.floor.map_or(0.0, float);
    let (most, least) = (if hard { cap } else { f64::INFINITY }, floor);
    let cut = high > most || low < least;
    let ends = (policy.finish(span.low), policy.finish(span.high));
    Span {
        low: ends.0,
        high: ends.1,
        low_open: span.low_open && low >= least,
        high_open: span.high_open && high <= most && high > least && ends.1 > ends.0,
        mean: if cut { clamped_mean(low, high, least, most) } else { span.mean + pad },
        on_cap: if row.at_cap.is_some() { 0.0 } else { on_cap },
        unit: span.unit,
    }
}

/// The mean of a uniform draw on [low, high] that is cut to [least, most].
fn clamped_mean(low: f64, high: f64, least: f64, most: f64) -> f64 {
    if high <= low || high <= least || low >= most {
        return low.max(least).min(most);
    }
    let (from, to) = (low.max(least), high.min(most));
    let below = (from - low) * least;
    let above = if high > to { (high - to) * most } else { 0.0 };
    (below + (to * to - from * from) / 2.0 + above) / (high - low)
}

fn between(policy: &Policy, low: Span, high: Span) -> Span {
    let random = matches!(&policy.backoff, Backoff::Expression { delay } if delay.is_random());
    let high_open = (high.high_open || random) && high.high > low.low;
    // Where a cap of the formula's own holds the upper corner, its end is drawn; that can't be told from here, so it is called open.
    Span { low: low.low, high: high.high, high_open, mean: f64::midpoint(low.mean, high.mean), ..high }
}

/// The longest delay before the last of so many draws that triple.
fn tripled(policy: &Policy, base: f64, draws: u32) -> f64 {
    let before = policy.capped(base * 3.0_f64.powi(draws.saturating_sub(1).min(1000) as i32));
    before * 3.0
}

fn decorrelated(policy: &Policy, n: u32, bound: bool, rising: bool) -> Span {
    let base = float(policy.backoff.base());
    let draws = if policy.first == First::Exact { n - 1 } else { n };
    let raw = tripled(policy, base, draws);
    let high = policy.capped(raw);
    // Finagle's draw leaves its end out; the others are told with both, as their sources have it.
    let high_open = rising && (raw <= high || bound);
    Span { high_open, low: base.min(high), ..Span::open(base.min(high), high) }
}

fn on_timeline(policy: &Policy, n: u32) -> Span {
    let unit = float(policy.backoff.base()) / 1.4;
    let before = |t: f64| if t > 0.0 { timeline(t) } else { 0.0 };
    let at = f64::from(n);
    let end = timeline(at);
    let high = if end.is_infinite() { f64::MAX } else { unit * (end - before(at - 2.0)) };
    let mean_at =
        |t: f64| (0..POINTS).map(|i| timeline(t + (f64::from(i) + 0.5) / f64::from(POINTS))).sum::<f64>() / f64::from(POINTS);
    let mean = unit * (mean_at(at - 1.0) - if n > 1 { mean_at(at - 2.0) } else { 0.0 });
    let mean = if mean.is_finite() { mean } else { high };
    finished(policy, Span { low_open: n > 1, mean, ..Span::open(0.0, high) }, &Row::NONE)
}

fn compounding(policy: &Policy, n: u32) -> Span {
    let base = float(policy.backoff.base());
    let mut high = base;
    for step in 1..n.min(1100) {
        high = policy.capped(high * f64::from(step).exp2());
    }
    let held = policy.cap.is_some_and(|cap| high >= float(cap));
    let low = if n <= 1 { base } else { 0.0 };
    Span { high_open: !held, ..Span::open(low, high) }
}

fn split_span(policy: &Policy, x: f64, share: f64, second: f64) -> Span {
    if !x.is_finite() {
        return finished(policy, Span::exact(x), &Row::NONE);
    }
    let end = x + split(x, share * (1.0 - 1e-12), second);
    let mean =
        (0..POINTS).map(|i| policy.finish(x + split(x, share * (f64::from(i) + 0.5) / f64::from(POINTS), second))).sum::<f64>();
    Span { mean: mean / f64::from(POINTS), ..finished(policy, Span::open(x, end), &Row::NONE) }
}

fn frozen_span(policy: &Policy, n: u32, (low, high): (f64, f64), row: &Row) -> Span {
    let at = |factor: f64| plain_span(policy, policy.curve(n, policy.most(), factor), row, n);
    let (least, most) = (at(frozen(low, high, 0.0)), at(frozen(low, high, 1.0) - 0.001));
    Span { low: least.low, mean: f64::midpoint(least.mean, most.mean), ..most }
}

/// The n-th of all, at both ends: an order statistic falls with no draw that rises.
fn sorted(policy: &Policy, n: u32, row: &Row) -> Span {
    let most = policy.most().clamp(1, 1000).max(n.min(1000));
    let spans: Vec<Span> = (1..=most).map(|k| plain_span(policy, policy.curve(k, policy.most(), 1.0), row, k)).collect();
    let nth = |end: fn(&Span) -> f64| {
        let mut ends: Vec<f64> = spans.iter().map(end).collect();
        ends.sort_by(f64::total_cmp);
        ends[(n.clamp(1, most) - 1) as usize]
    };
    let (low, high) = (nth(|span| span.low), nth(|span| span.high));
    Span { high_open: high > low, ..Span::open(low, high) }
}

/// Means over histories, where a delay builds on the one before or the formula is anybody's; else empty.
fn simulated_means(policy: &Policy, retries: u32) -> Vec<f64> {
    let needed = matches!(
        policy.jitter,
        Jitter::Decorrelated { .. } | Jitter::Compounding | Jitter::Frozen { .. } | Jitter::Sorted { .. }
    ) || matches!(&policy.backoff, Backoff::Expression { .. });
    if !needed {
        return Vec::new();
    }
    let mut sums = vec![0.0; retries as usize];
    for history in 0..HISTORIES {
        // A list drawn once is another one in each history.
        let seed = Seed(0x51_3A1 ^ history << 32);
        let mut last: Option<Duration> = None;
        for n in 1..=retries {
            let delay = policy.delay(n, last, &mut seed.draw(Stream::Jitter, JobId(history + 1), n));
            sums[n as usize - 1] += float(delay);
            last = Some(delay);
        }
    }
    sums.iter().map(|sum| sum / HISTORIES as f64).collect()
}

/// One delay drawn for this job: what a picture of dots is made of.
pub fn sample(policy: &Policy, n: u32, job: u64, last: Option<Duration>) -> Duration {
    let turn = Turn { n, most: policy.most(), last: last.map(float) };
    debug_assert!(turn.n > 0, "retries count from 1");
    saturate(float(policy.delay(n, last, &mut Seed(1).draw(Stream::Jitter, JobId(job), n))))
}
