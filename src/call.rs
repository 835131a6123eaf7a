//! What goes over the wire between a worker and the downstream, whatever the wire is.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::job::JobId;
use crate::time::{Instant, Window};

/// A name in 64 bits (FNV-1a), so that a call carries it without an allocation and equal names are equal everywhere.
///
/// Two names collide with a probability of about n²/2⁶⁵ for n names: never, for the handful that a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u64);

impl Label {
    /// No name at all.
    pub const NONE: Label = Label(0);

    /// The label of this name. Source: Fowler, Noll, Vo, draft-eastlake-fnv.
    pub const fn of(name: &str) -> Label {
        let bytes = name.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
            i += 1;
        }
        Label(hash)
    }

    /// The label of this number, as it is written in digits.
    pub fn of_number(number: u32) -> Label {
        let (mut digits, mut at, mut rest) = ([0_u8; 10], 10, number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        Label::of(std::str::from_utf8(&digits[at..]).expect("digits are text"))
    }
}

/// One request for one attempt of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The job it is for.
    pub job: JobId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The payload makes no sense: a healthy downstream rejects it every time.
    pub malformed: bool,
    /// The job's type: the route that is called, for faults of one route.
    pub route: Label,
    /// Who calls, for limits per caller: a worker, or whoever says so.
    pub caller: Label,
}

impl Call {
    /// The call that carries this body, on no route and by nobody in particular. A body that is not JSON is malformed.
    pub fn new(job: JobId, attempt: u32, body: &str) -> Call {
        let malformed = body != "{}" && serde_json::from_str::<serde::de::IgnoredAny>(body).is_err();
        Call { job, attempt, malformed, route: Label::NONE, caller: Label::NONE }
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
    /// The connection broke before there was an answer.
    Reset,
    /// The answer broke off in the middle of its body.
    Truncated,
    /// What came is not HTTP.
    Garbage,
    /// A success with a body that no healthy downstream sends, such as a maintenance page: only a caller that looks at the
    /// body finds out, and simq's callers do.
    WrongBody,
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
            Outcome::TimedOut
            | Outcome::Refused
            | Outcome::Reset
            | Outcome::Truncated
            | Outcome::Garbage
            | Outcome::WrongBody => true,
        }
    }
}

impl Outcome {
    /// The word for it, in files and on a job's row.
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match *self {
            Outcome::Ok => "ok",
            // Those that simq's own downstream gives take no memory.
            Outcome::Status { code: 500, .. } => "status-500",
            Outcome::Status { code: 503, .. } => "status-503",
            Outcome::Status { code: 429, .. } => "status-429",
            Outcome::Status { code: 422, .. } => "status-422",
            Outcome::Status { code, .. } => return Cow::Owned(format!("status-{code}")),
            Outcome::TimedOut => "timed-out",
            Outcome::Refused => "refused",
            Outcome::Reset => "reset",
            Outcome::Truncated => "truncated",
            Outcome::Garbage => "garbage",
            Outcome::WrongBody => "wrong-body",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// What the downstream does with a call, decided the moment it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It answers `outcome` at `at`; an outcome such as a reset is what the caller sees then.
    Answer {
        /// What it says.
        outcome: Outcome,
        /// When it says so; not before the arrival.
        at: Instant,
    },
    /// Its answer dribbles: the head comes at `from`, the last byte of the body at `at`.
    Slowly {
        /// What it says.
        outcome: Outcome,
        /// When the answer begins.
        from: Instant,
        /// When it is complete.
        at: Instant,
    },
    /// It accepts the call and never answers.
    Silence,
    /// It does not accept the call at all.
    Refuse,
    /// The call waits, and later arrivals decide how long: the reply comes with [`crate::journal::release`]. Only where the
    /// queue is last in, first out.
    Waits(Ticket),
}

/// Stands for a call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

impl Reply {
    /// What a caller sees that sent its call at `sent` and waits for `timeout`, and when it sees it. A call that
    /// [waits](Reply::Waits) has no reply yet and counts as unanswered.
    pub fn seen(&self, sent: Instant, timeout: Duration) -> (Outcome, Instant) {
        match *self {
            Reply::Answer { outcome, at } | Reply::Slowly { outcome, at, .. } if at.since(sent) < timeout => {
                (outcome, at.max(sent))
            }
            Reply::Refuse => (Outcome::Refused, sent),
            _ => (Outcome::TimedOut, sent + timeout),
        }
    }
}

/// Everything that is decided about a call: the reply, and what only the downstream and its door know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The reply.
    pub reply: Reply,
    /// When a server works on it; `None` if none does.
    pub work: Option<Window>,
    /// A Retry-After is written as a date instead of seconds.
    pub dated: bool,
}

impl Admission {
    /// A reply that costs no work.
    pub fn idle(reply: Reply) -> Admission {
        Admission { reply, work: None, dated: false }
    }
}
