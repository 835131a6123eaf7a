//! Settlements as the columns that the statements take.

use crate::job::Why;
use crate::queue::How;
use crate::time::nanos;

/// The word for what becomes of a job.
pub(super) fn word(how: &How) -> &'static str {
    match how {
        How::Complete => "complete",
        How::Retry { .. } => "retry",
        How::Discard { .. } => "discard",
        How::Release => "release",
    }
}

/// The delay of a retry in nanoseconds, 292 years at the most; 0 for anything else.
pub(super) fn delay_ns(how: &How) -> i64 {
    match how {
        How::Retry { after, .. } => i64::try_from(nanos(*after)).unwrap_or(i64::MAX),
        _ => 0,
    }
}

/// Why a job is given up, if it is.
pub(super) fn why(how: &How) -> Option<&'static str> {
    match how {
        How::Discard { why: Why::Permanent, .. } => Some("permanent"),
        How::Discard { why: Why::Exhausted, .. } => Some("exhausted"),
        _ => None,
    }
}

/// What went wrong, if anything did.
pub(super) fn failure(how: &How) -> Option<&str> {
    match how {
        How::Retry { reason, .. } | How::Discard { reason, .. } => Some(reason),
        How::Complete | How::Release => None,
    }
}
