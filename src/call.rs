//! What goes over the wire between a worker and the downstream, whatever the wire is.

use std::fmt;
use std::time::Duration;

use crate::job::JobId;
use crate::time::Instant;

/// One request for one attempt of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The job it is for.
    pub job: JobId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The payload makes no sense: a healthy downstream rejects it every time.
    pub malformed: bool,
}

impl Call {
    /// The call that carries this body. A body that is not JSON is malformed.
    pub fn new(job: JobId, attempt: u32, body: &str) -> Call {
        let malformed = serde_json::from_str::<serde::de::IgnoredAny>(body).is_err();
        Call { job, attempt, malformed }
    }
}

/// How an attempt ended, as its caller saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The downstream did the work.
    Ok,
    /// The downstream answered with an error status.
    Status {
        /// The HTTP status, 400 to 599.
        code: u16,
        /// How long the downstream asked the caller to wait.
        retry_after: Option<Duration>,
    },
    /// No answer within the client's time-out. The downstream may still be working on it.
    TimedOut,
    /// Nobody listens.
    Refused,
    /// The connection broke before the answer was complete.
    Reset,
}

impl Outcome {
    /// An error status without a hint.
    pub fn status(code: u16) -> Outcome {
        Outcome::Status { code, retry_after: None }
    }

    /// Whether trying again may help. Permanent: the 4xx statuses that blame the request, all but 408 (time-out), 425
    /// (too early) and 429 (too many requests), after RFC 9110 §15.5 and RFC 6585 §4.
    pub fn is_transient(&self) -> bool {
        match *self {
            Outcome::Ok => false,
            Outcome::Status { code, .. } => !(400..500).contains(&code) || matches!(code, 408 | 425 | 429),
            Outcome::TimedOut | Outcome::Refused | Outcome::Reset => true,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Outcome::Ok => f.write_str("ok"),
            Outcome::Status { code, .. } => write!(f, "status-{code}"),
            Outcome::TimedOut => f.write_str("timed-out"),
            Outcome::Refused => f.write_str("refused"),
            Outcome::Reset => f.write_str("reset"),
        }
    }
}

/// What the downstream does with a call, decided the moment it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It answers `outcome` at `at`.
    Answer {
        /// What it says.
        outcome: Outcome,
        /// When it says so; not before the arrival.
        at: Instant,
    },
    /// It accepts the call and never answers.
    Silence,
    /// It does not accept the call at all.
    Refuse,
}
