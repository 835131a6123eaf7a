//! What is said of a policy: its figures, as text and as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::Named;
use crate::policy::cells::{Cell, cells, relative_spread, total};
use crate::policy::{Order, RetryAfter};

/// Retries that are shown where nobody asked for a number.
const SHOWN: u32 = 10;
/// Most that are shown so.
const MOST_SHOWN: u32 = 25;

/// A policy's figures.
pub(super) struct Facts {
    pub(super) named: Named,
    /// The delays after each of the first attempts.
    pub(super) cells: Vec<Cell>,
    /// The retries it allows, if there is a limit.
    pub(super) retries: Option<u32>,
    /// What all allowed retries together wait, if there is a limit.
    pub(super) total: Option<(f64, f64)>,
    pub(super) spread: f64,
}

impl Facts {
    pub(super) fn of(named: Named, attempts: Option<u32>) -> Facts {
        let policy = &named.policy;
        let retries = policy.max_retries.filter(|retries| *retries != u32::MAX);
        let shown = attempts.unwrap_or_else(|| retries.unwrap_or(SHOWN).clamp(SHOWN, MOST_SHOWN));
        let all = retries.map(|retries| cells(policy, retries.min(1000)));
        let ten = cells(policy, SHOWN.max(shown));
        let widest = ten.iter().take(SHOWN as usize).map(relative_spread).fold(0.0, f64::max);
        Facts {
            total: all.as_ref().map(|all| total(policy, all)),
            spread: widest,
            cells: ten.into_iter().take(shown as usize).collect(),
            retries,
            named,
        }
    }

    /// How many retries, in words.
    pub(super) fn limit(&self) -> String {
        let elapsed = self.named.policy.limit.elapsed.map(|elapsed| span(elapsed.as_secs_f64()));
        match (self.named.policy.max_retries, elapsed) {
            (Some(u32::MAX), Some(elapsed)) => format!("within {elapsed}"),
            (Some(u32::MAX), None) => "no limit".into(),
            (Some(retries), Some(elapsed)) => format!("{retries} within {elapsed}"),
            (Some(retries), None) => retries.to_string(),
            (None, _) => "you choose".into(),
        }
    }

    pub(super) fn cap(&self) -> String {
        match (self.named.policy.cap, self.named.policy.order) {
            (None, _) => "–".into(),
            (Some(cap), Order::CapFirst) if self.named.policy.jitter.row().q > 1.0 => {
                format!("{} (soft)", span(cap.as_secs_f64()))
            }
            (Some(cap), _) => span(cap.as_secs_f64()),
        }
    }

    pub(super) fn budget(&self) -> String {
        let policy = &self.named.policy;
        let mut parts: Vec<String> = policy.budget.iter().map(|budget| budget.name()).collect();
        parts.extend(policy.breaker.as_ref().map(|_| "breaker".to_owned()));
        parts.extend(policy.rate.as_ref().map(|_| "adaptive rate".to_owned()));
        if parts.is_empty() { "–".into() } else { parts.join(", ") }
    }

    pub(super) fn hint(&self) -> &'static str {
        if self.named.policy.retry_after == RetryAfter::Ignore { "–" } else { self.named.policy.retry_after.name() }
    }

    pub(super) fn total(&self) -> String {
        match self.total {
            None => "–".into(),
            Some((low, high)) if (high - low).abs() <= high * 1e-9 => span(low),
            Some((low, high)) => format!("{} to {}", span(low), span(high)),
        }
    }

    /// The figures as JSON; delays in seconds.
    pub(super) fn json(&self) -> Value {
        let policy = &self.named.policy;
        let mut elapsed = 0.0;
        let cells: Vec<Value> = self
            .cells
            .iter()
            .map(|cell| {
                elapsed += cell.mean;
                let mut value = json!(cell);
                value["elapsed_mean"] = json!(elapsed);
                value
            })
            .collect();
        json!({
            "name": self.named.name,
            "system": self.named.system,
            "version": self.named.version,
            "source": self.named.source,
            "group": self.named.group,
            "retries": self.retries,
            "max_elapsed": policy.limit.elapsed.map(|elapsed| elapsed.as_secs_f64()),
            "total": self.total.map(|(low, high)| json!({ "low": low, "high": high })),
            "relative_spread": self.spread,
            "jitter": policy.jitter.name(),
            "cap": policy.cap.map(|cap| cap.as_secs_f64()),
            "floor": policy.floor.map(|floor| floor.as_secs_f64()),
            "quantum": Some(policy.clock.quantum).filter(|quantum| !quantum.is_zero()).map(|quantum| quantum.as_secs_f64()),
            "retry_after": policy.retry_after.name(),
            "budget": policy.budget.map(|budget| budget.name()),
            "policy": policy,
            "cells": cells,
        })
    }
}

/// Seconds in the unit that reads best, to three figures.
pub(super) fn span(secs: f64) -> String {
    let (value, unit) = match secs {
        _ if secs <= 0.0 => return "0".into(),
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3600.0, "h"),
        s if s < 730.0 * 86_400.0 => (s / 86_400.0, "d"),
        s => (s / (365.25 * 86_400.0), "y"),
    };
    format!("{} {unit}", trimmed(value))
}

/// One delay as an interval.
pub(super) fn interval(cell: &Cell) -> String {
    if cell.low == cell.high {
        return span(cell.low);
    }
    let (from, to) = (if cell.low_open { '(' } else { '[' }, if cell.high_open { ')' } else { ']' });
    format!("{from}{}, {}{to}", span(cell.low), span(cell.high))
}

/// A duration of the policy as text.
pub(super) fn duration(duration: Duration) -> String {
    span(duration.as_secs_f64())
}

/// Three figures, without zeros at the end.
fn trimmed(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 3.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Rows as aligned text: as wide as the widest cell of each column, but for rows of one cell, which may run over.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| row.len() > 1).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width.saturating_sub(cell.chars().count()))));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_at_a_glance() {
        for (secs, text) in [
            (0.0, "0"),
            (1e-9, "1 ns"),
            (0.025, "25 ms"),
            (1.5, "1.5 s"),
            (22_026.466, "6.12 h"),
            (1_763_395.0, "20.4 d"),
            (60.0, "60 s"),
            (120.0, "2 min"),
        ] {
            assert_eq!(span(secs), text);
        }
    }
}
