//! What a server's Retry-After does to the delay.
//!
//! Every rule found in the field. The commonest, `replace`, is a trap: the server itself brings the herd back together, and
//! one bad header stalls a worker for days. A hint that spreads ([`RetryAfter::Spread`]) or bounds costs one line.

use std::time::Duration;

use serde::Serialize;

use super::backoff::scaled;
use crate::call::Outcome;
use crate::rng::Draw;

/// What a server's Retry-After does to the delay. Never sooner than at once, never later than the longest duration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryAfter {
    /// Nothing: so does every job queue by default.
    Ignore,
    /// The delay is at least what the server asked for, so jitter never undercuts it.
    AtLeast,
    /// The delay is what the server asked for, exactly: all callers come back together.
    Replace,
    /// It replaces the delay, but within the delay and `above` more (AWS SDKs of 2026: 5 s).
    Within {
        /// How much more.
        above: Duration,
    },
    /// It replaces the delay, but is cut to between two bounds (linkerd; urllib3's 6 h with a lower bound of zero).
    Between {
        /// The least.
        low: Duration,
        /// The most.
        high: Duration,
    },
    /// It replaces the delay; one longer than this is a reason to give up (azcore, faraday-retry).
    GiveUpAbove {
        /// The longest that is waited.
        longest: Duration,
        /// It is a lower bound of the delay instead (faraday-retry).
        at_least: bool,
    },
    /// It is spread over `[hint, hint · (1 + share))`, so that callers do not come back together; one longer than `longest` is not
    /// believed (Envoy: a half, 300 s).
    Spread {
        /// How far, relative to the hint.
        share: f64,
        /// The longest that is believed.
        longest: Duration,
    },
    /// It is the delay, exactly, and the schedule begins anew (gRPC's push-back, cenkalti/backoff 5).
    Restart,
}

/// Which answers' hints are heeded, and whether a hint alone is a reason to retry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Heed {
    /// Only on these statuses; on all if empty.
    pub statuses: Vec<u16>,
    /// A hint makes every failure worth a retry (azure-core).
    pub any_failure: bool,
}

impl Heed {
    /// The hint that counts.
    pub(super) fn hint(&self, outcome: &Outcome) -> Option<Duration> {
        match *outcome {
            Outcome::Status { code, retry_after } if self.statuses.is_empty() || self.statuses.contains(&code) => retry_after,
            _ => None,
        }
    }
}

impl RetryAfter {
    /// The delay in view of the hint; `None` to give up.
    pub(super) fn apply(self, after: Duration, hint: Duration, draw: &mut Draw) -> Option<Duration> {
        Some(match self {
            RetryAfter::Ignore => after,
            RetryAfter::AtLeast => after.max(hint),
            RetryAfter::Replace | RetryAfter::Restart => hint,
            RetryAfter::Within { above } => hint.clamp(after, after.saturating_add(above)),
            RetryAfter::Between { low, high } => hint.max(low).min(high),
            RetryAfter::GiveUpAbove { longest, .. } if hint > longest => return None,
            RetryAfter::GiveUpAbove { at_least: true, .. } => after.max(hint),
            RetryAfter::GiveUpAbove { .. } => hint,
            RetryAfter::Spread { longest, .. } if hint > longest => after,
            RetryAfter::Spread { share, .. } => scaled(hint, 1.0 + share * draw.unit()),
        })
    }

    /// Its name, as in a scenario.
    pub fn name(&self) -> &'static str {
        match self {
            RetryAfter::Ignore => "ignore",
            RetryAfter::AtLeast => "at-least",
            RetryAfter::Replace => "replace",
            RetryAfter::Within { .. } => "within",
            RetryAfter::Between { .. } => "between",
            RetryAfter::GiveUpAbove { .. } => "give-up-above",
            RetryAfter::Spread { .. } => "spread",
            RetryAfter::Restart => "restart",
        }
    }

    pub(super) fn scaled(self, factor: f64) -> RetryAfter {
        let by = |duration| scaled(duration, factor);
        match self {
            RetryAfter::Within { above } => RetryAfter::Within { above: by(above) },
            RetryAfter::Between { low, high } => RetryAfter::Between { low: by(low), high: by(high) },
            RetryAfter::GiveUpAbove { longest, at_least } => RetryAfter::GiveUpAbove { longest: by(longest), at_least },
            RetryAfter::Spread { share, longest } => RetryAfter::Spread { share, longest: by(longest) },
            same => same,
        }
    }
}
