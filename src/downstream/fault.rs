//! What an outage does.
//!
//! Outages are tried in the order of the scenario; the first that answers a call decides, and impairments add up. Windows of
//! `unavailable`, `refuse` and `hang` may not overlap others: a scenario in which they do is refused.

use std::time::Duration;

use serde::Serialize;

use crate::call::{Outcome, Reply};
use crate::time::{Instant, Window};

/// A span of a run in which the downstream misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// From when until when.
    pub window: Window,
    /// How.
    pub mode: Mode,
}

/// How a downstream misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Mode {
    /// Every call is answered 503 at once.
    Unavailable {
        /// The Retry-After it sends along.
        retry_after: Option<Duration>,
    },
    /// Nobody listens: connections are refused, live ones are cut.
    Refuse,
    /// Calls are accepted and never answered; the caller's time-out ends them.
    Hang,
    /// Slower, and partly failing with 500.
    Brownout {
        /// Share of calls that fail on top of the base error rate, 0 to 1.
        error_rate: f64,
        /// Factor on the latency, at least 1.
        slowdown: f64,
    },
    /// A token bucket: calls beyond the rate are answered 429 at once.
    RateLimit {
        /// Calls allowed per second, above zero.
        rate: f64,
        /// Calls allowed at once after a quiet time, at least 1.
        burst: u32,
        /// The Retry-After it sends along.
        retry_after: Duration,
    },
}

impl Mode {
    /// The word for it in a scenario, a table or a chart.
    pub fn name(&self) -> &'static str {
        match self {
            Mode::Unavailable { .. } => "unavailable",
            Mode::Refuse => "refuse",
            Mode::Hang => "hang",
            Mode::Brownout { .. } => "brownout",
            Mode::RateLimit { .. } => "rate-limit",
        }
    }

    /// Whether it leaves nothing for another fault to act on, so that an overlap would contradict.
    pub fn is_total(&self) -> bool {
        matches!(self, Mode::Unavailable { .. } | Mode::Refuse | Mode::Hang)
    }
}

/// What a fault makes of a call.
#[derive(Debug)]
pub(super) enum Verdict {
    Pass,
    Reply(Reply),
    Impair { slower: f64, failing: f64 },
}

impl Outage {
    /// The state this outage needs, if any.
    pub(super) fn bucket(&self) -> Option<Bucket> {
        match self.mode {
            Mode::RateLimit { rate, burst, .. } => Some(Bucket::full(rate, burst, self.window.from)),
            _ => None,
        }
    }

    /// What it makes of a call that arrives `now`, inside the window.
    pub(super) fn judge(&self, now: Instant, bucket: Option<&mut Bucket>) -> Verdict {
        let answer =
            |code, retry_after| Verdict::Reply(Reply::Answer { outcome: Outcome::Status { code, retry_after }, at: now });
        match self.mode {
            Mode::Unavailable { retry_after } => answer(503, retry_after),
            Mode::Refuse => Verdict::Reply(Reply::Refuse),
            Mode::Hang => Verdict::Reply(Reply::Silence),
            Mode::Brownout { error_rate, slowdown } => Verdict::Impair { slower: slowdown, failing: error_rate },
            Mode::RateLimit { retry_after, .. } => {
                let granted = bucket.is_none_or(|bucket| bucket.take(now));
                if granted { Verdict::Pass } else { answer(429, Some(retry_after)) }
            }
        }
    }
}

/// A token bucket, full at first.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn full(rate: f64, burst: u32, from: Instant) -> Bucket {
        Bucket { rate, burst: f64::from(burst), tokens: f64::from(burst), filled: from }
    }

    fn take(&mut self, now: Instant) -> bool {
        self.tokens = (self.tokens + now.since(self.filled).as_secs_f64() * self.rate).min(self.burst);
        self.filled = self.filled.max(now);
        let granted = self.tokens >= 1.0;
        if granted {
            self.tokens -= 1.0;
        }
        granted
    }
}
