//! Circuit breakers: stop calling a service that is down, and try it again with a few calls before all return.
//!
//! ```text
//!            failures reach the trip                  `open` is over
//!  closed ───────────────────────────► open ───────────────────────────► half-open
//!    ▲                                   ▲                                   │ │
//!    │  every probe succeeded            └───────────── a probe failed ──────┘ │
//!    └─────────────────────────────────────────────────────────────────────────┘
//! ```
//! While it is open, attempts that a worker has claimed are held, not failed: an attempt that never called spends no retry.
//! A share of jitter on the open time keeps breakers that opened together from probing together.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use super::backoff::scaled;
use super::classify::{Class, Pattern};
use super::guard::Scope;
use crate::call::Outcome;
use crate::time::{Instant, nanos};

/// A circuit breaker and who shares it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breaker {
    /// What opens it.
    pub trip: Trip,
    /// How long it stays open.
    pub open: Duration,
    /// Up to this share longer, drawn at each opening.
    pub jitter: f64,
    /// Calls that try the service when the open time is over; all must succeed. At least 1.
    pub probes: u32,
    /// Failures that count; all that are retried if empty.
    pub on: Vec<Pattern>,
    /// Who shares it.
    pub scope: Scope,
}

/// What opens a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "trip", rename_all = "kebab-case")]
pub enum Trip {
    /// So many failures in a row.
    Consecutive {
        /// At least 1.
        failures: u32,
    },
    /// A share of the calls of a sliding window.
    Ratio {
        /// The share that opens it, above 0.
        share: f64,
        /// The window.
        window: Duration,
        /// With fewer calls in it nothing opens.
        least: u32,
    },
}

/// How a breaker stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Circuit {
    phase: Phase,
    row: u32,
    window: VecDeque<(u64, u32, u32)>,
    /// How often it has opened.
    pub(super) openings: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    #[default]
    Closed,
    Open {
        until: Instant,
    },
    HalfOpen {
        out: u32,
        good: u32,
    },
}

const SLICES: u64 = 10;

impl Circuit {
    /// Lets a call through, or says when to ask again.
    pub(super) fn admit(&mut self, breaker: &Breaker, now: Instant) -> Result<(), Instant> {
        if let Phase::Open { until } = self.phase {
            if now < until {
                return Err(until);
            }
            self.phase = Phase::HalfOpen { out: 0, good: 0 };
        }
        match &mut self.phase {
            Phase::HalfOpen { out, good } if *out + *good >= breaker.probes => {
                Err(now + (breaker.open / 20).max(Duration::from_millis(1)))
            }
            Phase::HalfOpen { out, .. } => {
                *out += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes note of how a call ended. `chance` is drawn for an opening.
    pub(super) fn note(&mut self, breaker: &Breaker, now: Instant, failed: bool, chance: f64) {
        match (self.phase, failed) {
            (Phase::HalfOpen { .. }, true) => self.open(breaker, now, chance),
            (Phase::HalfOpen { out, good }, false) if good + 1 >= breaker.probes => {
                let _ = out;
                *self = Circuit { openings: self.openings, ..Circuit::default() };
            }
            (Phase::HalfOpen { out, good }, false) => self.phase = Phase::HalfOpen { out: out.saturating_sub(1), good: good + 1 },
            (Phase::Open { .. }, _) => {}
            (Phase::Closed, _) => {
                if self.trips(breaker, now, failed) {
                    self.open(breaker, now, chance);
                }
            }
        }
    }

    /// Whether calls are held.
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    fn open(&mut self, breaker: &Breaker, now: Instant, chance: f64) {
        let until = now + scaled(breaker.open, 1.0 + breaker.jitter * chance);
        *self = Circuit { phase: Phase::Open { until }, openings: self.openings.saturating_add(1), ..Circuit::default() };
    }

    fn trips(&mut self, breaker: &Breaker, now: Instant, failed: bool) -> bool {
        self.row = if failed { self.row.saturating_add(1) } else { 0 };
        match breaker.trip {
            Trip::Consecutive { failures } => self.row >= failures,
            Trip::Ratio { share, window, least } => {
                let slice = now.as_nanos() / (nanos(window) / SLICES).max(1);
                while self.window.front().is_some_and(|(at, ..)| at + SLICES <= slice) {
                    self.window.pop_front();
                }
                match self.window.back_mut() {
                    Some(last) if last.0 >= slice => (last.1, last.2) = (last.1 + 1, last.2 + u32::from(failed)),
                    _ => self.window.push_back((slice, 1, u32::from(failed))),
                }
                let (calls, failures) =
                    self.window.iter().fold((0, 0), |sum, (_, calls, failed)| (sum.0 + calls, sum.1 + failed));
                calls >= least && f64::from(failures) >= share * f64::from(calls)
            }
        }
    }
}

impl Breaker {
    /// Whether an outcome counts as a failure.
    pub(super) fn counts(&self, outcome: &Outcome, class: Class) -> bool {
        match class {
            Class::Success => false,
            _ if !self.on.is_empty() => self.on.iter().any(|pattern| pattern.holds(outcome)),
            _ => matches!(class, Class::Retry | Class::Throttled),
        }
    }

    pub(super) fn scaled(&self, factor: f64) -> Breaker {
        let trip = match self.trip {
            Trip::Ratio { share, window, least } => Trip::Ratio { share, window: scaled(window, factor), least },
            same => same,
        };
        Breaker { trip, open: scaled(self.open, factor), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(trip: Trip) -> Breaker {
        Breaker { trip, open: Duration::from_secs(5), jitter: 0.5, probes: 2, on: vec![], scope: Scope::Worker }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn opens_after_failures_in_a_row_and_probes_with_a_few() {
        let breaker = breaker(Trip::Consecutive { failures: 3 });
        let mut circuit = Circuit::default();
        for failed in [true, true, false, true, true, true] {
            assert!(circuit.admit(&breaker, at(0)).is_ok());
            circuit.note(&breaker, at(0), failed, 0.5);
        }
        assert_eq!(circuit.admit(&breaker, at(1)), Err(at(6250)), "5 s and half of half of it");
        assert!(circuit.admit(&breaker, at(6250)).is_ok() && circuit.admit(&breaker, at(6250)).is_ok());
        assert!(circuit.admit(&breaker, at(6250)).is_err(), "two probes and no more");
        circuit.note(&breaker, at(6300), false, 0.0);
        assert!(circuit.admit(&breaker, at(6300)).is_err(), "one good probe of two is not enough");
        circuit.note(&breaker, at(6310), false, 0.0);
        assert!(circuit.admit(&breaker, at(6310)).is_ok() && circuit.openings == 1);
    }

    #[test]
    fn a_bad_probe_opens_it_again() {
        let breaker = breaker(Trip::Consecutive { failures: 1 });
        let mut circuit = Circuit::default();
        circuit.note(&breaker, at(0), true, 0.0);
        assert!(circuit.admit(&breaker, at(5000)).is_ok());
        circuit.note(&breaker, at(5100), true, 0.0);
        assert_eq!(circuit.admit(&breaker, at(5101)), Err(at(10_100)));
    }

    #[test]
    fn a_ratio_needs_enough_calls_within_its_window() {
        let breaker = breaker(Trip::Ratio { share: 0.1, window: Duration::from_secs(30), least: 100 });
        let mut circuit = Circuit::default();
        for call in 0..99 {
            circuit.note(&breaker, at(call), true, 0.0);
        }
        assert!(!circuit.is_open(), "too few calls");
        circuit.note(&breaker, at(60_000), true, 0.0);
        assert!(!circuit.is_open(), "too long ago");
        for call in 0..99 {
            circuit.note(&breaker, at(60_000 + call), call < 10, 0.0);
        }
        assert!(circuit.is_open());
    }
}
