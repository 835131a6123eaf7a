//! What a fault does: its mode, its window, and how much of the traffic it strikes.
//!
//! Windows may overlap. A call then meets the faults in the order in which a request travels, [`Mode::layer`]: the socket
//! (`refuse`, `hang`, `reset`), the gateway (`rate-limit`, `unavailable`, `maintenance`, `permanent`), the servers
//! (`brownout`, `slow-start`), the answer on its way back (`slow-body`, `truncated`, `garbage`); those of one layer in the
//! order of their `at`, then of the file. The first that answers a call decides. Those of the servers add up: slowdowns
//! multiply, failures are independent, of two numbers of servers the smaller holds. An answer may dribble and be spoilt as
//! well: then it is spoilt when its last byte was due.

mod limiter;
mod strike;
mod when;

use std::time::Duration;

use serde::Serialize;

use crate::time::Window;
pub(super) use limiter::Limiter;
pub(super) use strike::{Broken, Effects, Fault};

/// A span of a run in which the downstream misbehaves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// From when until when; of a repeating one the first time.
    pub window: Window,
    /// How.
    #[serde(flatten)]
    pub mode: Mode,
    /// It comes again each time so much has passed, for ever; not shorter than the window.
    pub every: Option<Duration>,
    /// Share of the calls that it strikes, 0 to 1; of jobs, where the mode marks jobs.
    pub probability: f64,
    /// From its begin until it strikes in full.
    pub ramp_in: Duration,
    /// How long before its end it begins to fade.
    pub ramp_out: Duration,
    /// The job type that it strikes; `None` strikes all.
    pub route: Option<String>,
}

/// How a downstream misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Mode {
    /// Calls are answered 503 at once.
    Unavailable {
        /// The Retry-After it sends along.
        retry_after: Option<Duration>,
        /// As a date, not as seconds.
        dated: bool,
    },
    /// Nobody listens: connections are refused, live ones are cut.
    Refuse,
    /// Calls are accepted and never answered; the caller's time-out ends them.
    Hang,
    /// The connection is reset in the middle of the request.
    Reset,
    /// The head of an answer comes when the work is done, and its body dribbles for so long.
    SlowBody {
        /// From the first byte to the last.
        takes: Duration,
    },
    /// The work is done, and its answer breaks off in the middle of the body.
    Truncated,
    /// The work is done, and what comes back is not HTTP.
    Garbage,
    /// 200 at once, with a page for people instead of the answer.
    Maintenance,
    /// Slower, partly failing with 500, with fewer servers.
    Brownout {
        /// Share of calls that fail on top of the base error rate, 0 to 1.
        error_rate: f64,
        /// Factor on the latency, at least 1.
        slowdown: f64,
        /// So many servers are left, at least 1; `None` leaves all.
        servers: Option<u32>,
    },
    /// Calls beyond a limit are answered 429 at once.
    RateLimit(RateLimit),
    /// Some jobs are answered so, at every attempt: the fault is the request's.
    Permanent {
        /// The status, 400 to 499.
        code: u16,
    },
    /// Cold: it begins at a share of its speed and warms up evenly over the window.
    SlowStart {
        /// The share it begins at, above 0 to 1.
        from: f64,
    },
}

/// A limit on the rate of calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateLimit {
    /// How it counts.
    pub limiter: LimiterKind,
    /// Calls allowed per second, above zero.
    pub rate: f64,
    /// `token-bucket`: calls allowed at once after a quiet time, at least 1.
    pub burst: u32,
    /// `fixed-window` and `sliding-window`: the window in which `rate × per` calls are allowed, at least one.
    pub per: Duration,
    /// Whether each caller has a limit of its own.
    pub per_caller: bool,
    /// The Retry-After it sends along.
    pub retry_after: Hint,
    /// As a date, not as seconds.
    pub dated: bool,
}

/// How a rate limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimiterKind {
    /// Tokens come at the rate, and up to a burst of them are kept.
    #[default]
    TokenBucket,
    /// So many calls from one full window to the next.
    FixedWindow,
    /// So many calls in any window that ends now.
    SlidingWindow,
}

/// What a 429 says about when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    /// Nothing.
    None,
    /// Always the same.
    After(Duration),
    /// Until the limit allows a call again, in whole seconds rounded up: counts down to the window's reset.
    Reset,
}

impl RateLimit {
    /// A token bucket for all callers together, that says when to come back.
    pub fn bucket(rate: f64, burst: u32, retry_after: Duration) -> RateLimit {
        let (limiter, per) = (LimiterKind::TokenBucket, Duration::from_secs(1));
        RateLimit { limiter, rate, burst, per, per_caller: false, retry_after: Hint::After(retry_after), dated: false }
    }
}

impl Outage {
    /// A fault that strikes every call from the window's begin to its end.
    pub fn plain(window: Window, mode: Mode) -> Outage {
        let zero = Duration::ZERO;
        Outage { window, mode, every: None, probability: 1.0, ramp_in: zero, ramp_out: zero, route: None }
    }

    /// Whether every call of every type meets it for the whole window.
    pub fn is_certain(&self) -> bool {
        self.probability >= 1.0 && self.ramp_in.is_zero() && self.ramp_out.is_zero() && self.route.is_none()
    }
}

impl Mode {
    /// The word for it in a scenario, a table or a chart.
    pub fn name(&self) -> &'static str {
        match self {
            Mode::Unavailable { .. } => "unavailable",
            Mode::Refuse => "refuse",
            Mode::Hang => "hang",
            Mode::Reset => "reset",
            Mode::SlowBody { .. } => "slow-body",
            Mode::Truncated => "truncated",
            Mode::Garbage => "garbage",
            Mode::Maintenance => "maintenance",
            Mode::Brownout { .. } => "brownout",
            Mode::RateLimit(_) => "rate-limit",
            Mode::Permanent { .. } => "permanent",
            Mode::SlowStart { .. } => "slow-start",
        }
    }

    /// Where a call meets it on its way: lower comes first.
    pub fn layer(&self) -> u8 {
        match self {
            Mode::Refuse => 0,
            Mode::Hang => 1,
            Mode::Reset => 2,
            Mode::RateLimit(_) => 3,
            Mode::Unavailable { .. } => 4,
            Mode::Maintenance => 5,
            Mode::Permanent { .. } => 6,
            Mode::Brownout { .. } => 7,
            Mode::SlowStart { .. } => 8,
            Mode::SlowBody { .. } => 9,
            Mode::Truncated => 10,
            Mode::Garbage => 11,
        }
    }

    /// Whether it leaves nothing of the calls that it strikes for a later fault to act on.
    pub fn is_total(&self) -> bool {
        matches!(self, Mode::Unavailable { .. } | Mode::Refuse | Mode::Hang | Mode::Reset | Mode::Maintenance)
    }

    /// Whether it is a fault of the downstream, whose end is a recovery; the others blame the request.
    pub fn is_outage(&self) -> bool {
        !matches!(self, Mode::Permanent { .. })
    }
}
