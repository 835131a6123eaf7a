//! When retries end, whatever the failure.

use std::time::Duration;

use serde::Serialize;

use super::backoff::scaled;

/// What ends the retries, beside their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Limit {
    /// No retry once a job is this old; its age is taken by the store's clock when the attempt began.
    pub elapsed: Option<Duration>,
    /// The delay counts as well: no retry that would only come due after `elapsed`.
    pub with_delay: bool,
    /// The retry before the curve passes the cap is the last: one try earlier than one would think.
    ///
    /// Source: apimachinery, `pkg/util/wait/backoff.go`: reaching the cap sets the remaining steps to zero.
    pub at_cap: bool,
}

impl Limit {
    /// Whether a job of this age, that would wait so long, is given up.
    pub(super) fn is_over(&self, age: Duration, delay: Duration) -> bool {
        let counted = if self.with_delay { age.saturating_add(delay) } else { age };
        self.elapsed.is_some_and(|elapsed| counted > elapsed || (!self.with_delay && counted >= elapsed))
    }

    pub(super) fn scaled(&self, factor: f64) -> Limit {
        Limit { elapsed: self.elapsed.map(|elapsed| scaled(elapsed, factor)), ..*self }
    }
}
