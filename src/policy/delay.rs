//! From a retry's number to a delay: counter, curve, cap and jitter in their order, grain, pad, floor.

use std::time::Duration;

use serde::Serialize;

use super::Policy;
use super::backoff::{Backoff, float, saturate};
use super::clamp::Order;
use super::expression::Question;
use super::jitter::{AtCap, Jitter, Row, timeline};
use crate::rng::Draw;

/// How retries are counted for the curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// The curve stands still from this retry on: graphile-worker's e^min(n, 10).
    pub until: Option<u32>,
    /// Where more attempts are allowed than this, the retry's number is shrunk to it: `round(n · rescale / attempts)` (Oban: 20).
    pub rescale: Option<u32>,
    /// Each kind of failure has a count and so a limit of its own (ActiveJob).
    pub by_failure: bool,
}

/// What the first retry waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// As the curve says.
    #[default]
    Scheduled,
    /// Nothing (kubelet, azure-core, urllib3).
    Free,
    /// What the curve says, without jitter (gRPC's connections in Go, Finagle).
    Exact,
}

impl Counter {
    /// The number that the curve is asked with.
    pub(super) fn value(&self, n: u32, most: u32) -> u32 {
        let attempts = most.saturating_add(1);
        let n = match self.rescale {
            Some(to) if attempts > to && most < i32::MAX as u32 => {
                (f64::from(n) * f64::from(to) / f64::from(attempts)).round() as u32
            }
            _ => n,
        };
        self.until.map_or(n, |until| n.min(until))
    }
}

/// What is known when a delay is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) n: u32,
    pub(super) most: u32,
    /// The delay before, in nanoseconds.
    pub(super) last: Option<f64>,
}

impl Policy {
    /// The delay before retry `n` (from 1), with the server's wish left out. Asking twice gives the same delay.
    pub fn delay(&self, n: u32, last_delay: Option<Duration>, draw: &mut Draw) -> Duration {
        self.delay_of(n, self.most(), last_delay, draw)
    }

    /// No delay of this policy before retry `n` is longer, whatever is drawn; the longest duration where nothing bounds it.
    pub fn longest(&self, n: u32) -> Duration {
        match self.jitter {
            // The delay before may have been any, a server's wish among them.
            Jitter::Decorrelated { .. } | Jitter::Compounding => saturate(self.finish(self.cap.map_or(f64::MAX, float)).ceil()),
            _ if matches!(&self.backoff, Backoff::Expression { .. }) => Duration::MAX,
            _ => saturate(super::cells::reach(self, n).ceil()),
        }
    }

    /// The delay before retry `n` of at most `most`.
    pub(super) fn delay_of(&self, n: u32, most: u32, last_delay: Option<Duration>, draw: &mut Draw) -> Duration {
        saturate(self.drawn(Turn { n, most, last: last_delay.map(float) }, draw))
    }

    /// How many retries the policy itself allows.
    pub(super) fn most(&self) -> u32 {
        self.max_retries.unwrap_or(u32::MAX)
    }

    /// Whether the curve has come to its end before retry `n`.
    pub(super) fn is_over_at(&self, n: u32) -> bool {
        let beyond_cap = |cap: Duration| self.limit.at_cap && self.curve(n, self.most(), 1.0) > float(cap);
        n > self.backoff.last_retry() || self.cap.is_some_and(beyond_cap)
    }

    /// The curve with its pads, before the cap, in nanoseconds; `frozen` is a factor on the curve alone.
    pub(super) fn curve(&self, n: u32, most: u32, frozen: f64) -> f64 {
        let counted = self.counter.value(n, most);
        self.padded(self.backoff.nanos(counted, most) * frozen)
    }

    /// Plus and minus, and an end far beyond the longest delay: an infinite wait times nothing would be no number.
    pub(super) fn padded(&self, x: f64) -> f64 {
        const FAR: f64 = 1e30;
        #[expect(clippy::manual_clamp, reason = "what is no number becomes 0 here, and would stay none by clamp")]
        (x + float(self.plus) - float(self.minus)).max(0.0).min(FAR)
    }

    fn drawn(&self, turn: Turn, draw: &mut Draw) -> f64 {
        if turn.n <= 1 {
            match self.first {
                First::Free => return 0.0,
                First::Exact => return self.finish(self.capped(self.curve(1, turn.most, 1.0))),
                First::Scheduled => {}
            }
        }
        match &self.jitter {
            Jitter::Decorrelated { bound, rising } => self.finish(self.decorrelated(*bound, *rising, turn, draw)),
            Jitter::Timeline => self.finish(self.on_timeline(turn.n, draw)),
            Jitter::Compounding => {
                let last = turn.last.unwrap_or_else(|| float(self.backoff.base()));
                self.finish(self.capped(last * f64::from(turn.n.saturating_sub(1)).exp2() * draw.unit()))
            }
            Jitter::Split { share, second, cloned } => {
                let chance = if *cloned { draw.common(turn.n).unit() } else { draw.unit() };
                let x = self.capped(self.curve(turn.n, turn.most, 1.0));
                self.finish(x + split(x, share * chance, float(*second)))
            }
            Jitter::Frozen { low, high, row } => {
                let x = self.curve(turn.n, turn.most, frozen(*low, *high, draw.common(turn.n).unit()));
                self.play(x, row, turn.n, draw)
            }
            Jitter::Sorted { row } => self.sorted(turn, row, draw),
            plain => {
                let x = match &self.backoff {
                    Backoff::Expression { delay } => {
                        let question = Question { n: turn.n, retries: turn.most, last: turn.last };
                        self.padded(delay.nanos(question, draw))
                    }
                    _ => self.curve(turn.n, turn.most, 1.0),
                };
                self.play(x, &plain.row(), turn.n, draw)
            }
        }
    }

    /// One draw on the interval that the wait `x` and the row span.
    fn play(&self, x: f64, row: &Row, n: u32, draw: &mut Draw) -> f64 {
        let (low, high, unit) = self.interval(x, row, n);
        let mut value = self.grain.pick((low, high), unit, draw_if(high > low, draw));
        if let Some(at) = self.redrawn(row, x, value) {
            let cap = self.cap.map_or(f64::MAX, float);
            value = self.grain.pick((cap * at.p, cap * at.q), unit, draw_if(at.q > at.p, draw));
        }
        self.finish(value)
    }

    /// The interval that is drawn from, and the unit.
    pub(super) fn interval(&self, x: f64, row: &Row, n: u32) -> (f64, f64, f64) {
        let before =
            if matches!(self.order, Order::CapFirst | Order::CapBoth) && row.at_cap.is_none() { self.capped(x) } else { x };
        let unit = self.grain.nanos(before, n);
        let (low, high) = row.ends(before, n);
        match self.order {
            Order::Clip => {
                let (floor, cap) = (self.floor.map_or(0.0, float), self.cap.map_or(f64::MAX, float));
                (low.clamp(floor.min(cap), cap), high.clamp(floor.min(cap), cap), unit)
            }
            _ => (low, high, unit),
        }
    }

    /// The factors that hold at the cap, if this is there.
    pub(super) fn redrawn(&self, row: &Row, x: f64, value: f64) -> Option<AtCap> {
        let cap = self.cap.map_or(f64::INFINITY, float);
        row.at_cap.filter(|at| if at.drawn { value > cap } else { x >= cap })
    }

    /// Pad, hard cap and floor.
    pub(super) fn finish(&self, value: f64) -> f64 {
        let padded = value + float(self.pad);
        let hard = matches!(self.order, Order::CapLast | Order::CapBoth | Order::Clip);
        let capped = if hard { self.capped(padded) } else { padded };
        self.floor.map_or(capped, |floor| capped.max(float(floor)))
    }

    pub(super) fn capped(&self, x: f64) -> f64 {
        self.cap.map_or(x, |cap| x.min(float(cap)))
    }

    fn decorrelated(&self, bound: bool, rising: bool, turn: Turn, draw: &mut Draw) -> f64 {
        let base = float(self.backoff.base());
        let last = turn.last.unwrap_or(base).max(base);
        let high = if bound { self.capped(last * 3.0) } else { last * 3.0 };
        let low = if rising { last.min(high) } else { base.min(high) };
        let drawn = self.grain.pick((low, high), self.grain.nanos(base, turn.n), draw.unit());
        // The article cuts what was drawn; a cap below the base would else be exceeded by the floor of the draw.
        self.capped(drawn)
    }

    fn on_timeline(&self, n: u32, draw: &mut Draw) -> f64 {
        let unit = float(self.backoff.base()) / 1.4;
        let here = timeline(f64::from(n) - 1.0 + draw.unit());
        let before = if n <= 1 { 0.0 } else { timeline(f64::from(n) - 2.0 + draw.sibling(n - 1).unit()) };
        // Far out both are infinite, and their difference is no number: the wait is as long as waits get.
        if here.is_infinite() { f64::MAX } else { unit * (here - before) }
    }

    /// All retries' draws, sorted. No more than a thousand are looked at; nobody allows more.
    fn sorted(&self, turn: Turn, row: &Row, draw: &mut Draw) -> f64 {
        let retries = turn.most.clamp(1, 1000).max(turn.n.min(1000));
        let mut all: Vec<f64> =
            (1..=retries).map(|n| self.play(self.curve(n, turn.most, 1.0), row, n, &mut draw.sibling(n))).collect();
        all.sort_by(f64::total_cmp);
        all[(turn.n.clamp(1, retries) - 1) as usize]
    }
}

/// tower's jitter on a wait: whole seconds, cut to whole seconds, and the rest apart.
pub(super) fn split(x: f64, share: f64, second: f64) -> f64 {
    let whole = (x / second + 1e-9).floor();
    (whole * share).floor() * second + (x - whole * second).max(0.0) * share
}

/// A factor to the thousandth.
pub(super) fn frozen(low: f64, high: f64, chance: f64) -> f64 {
    ((low + (high - low) * chance) * 1000.0 + 1e-6).floor() / 1000.0
}

fn draw_if(needed: bool, draw: &mut Draw) -> f64 {
    if needed { draw.unit() } else { 0.0 }
}
