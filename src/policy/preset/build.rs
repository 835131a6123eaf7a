//! Words to write policies in a table's line.

use std::time::Duration;

use crate::policy::{
    AtCap, Backoff, Budget, BudgetRule, Classes, ClockBase, Ends, First, Grain, Jitter, Order, Pattern, Policy, RetryAfter, Row,
    Scope, Tail,
};

/// No limit.
pub(super) const ENDLESS: u32 = u32::MAX;
pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

fn curve(backoff: Backoff) -> Policy {
    Policy { backoff, ..Policy::default() }
}

pub(super) fn at_once() -> Policy {
    Policy::default()
}

pub(super) fn constant(delay: f64) -> Policy {
    curve(Backoff::Constant { delay: secs(delay) })
}

pub(super) fn linear(base: f64, step: f64) -> Policy {
    curve(Backoff::Linear { base: secs(base), step: secs(step) })
}

pub(super) fn exponential(base: f64, factor: f64) -> Policy {
    curve(Backoff::Exponential { base: secs(base), factor })
}

pub(super) fn stepped(base: f64, factor: f64) -> Policy {
    curve(Backoff::Stepped { base: secs(base), factor, unit: MS })
}

pub(super) fn power(power: f64, offset: u32) -> Policy {
    curve(Backoff::Polynomial { base: SECOND, offset, power })
}

pub(super) fn list(delays: &[u64], tail: Tail) -> Policy {
    curve(Backoff::List { delays: delays.iter().copied().map(Duration::from_secs).collect(), tail })
}

pub(super) fn any(backoff: Backoff) -> Policy {
    curve(backoff)
}

impl Policy {
    pub(super) fn plus(self, plus: f64) -> Policy {
        Policy { plus: secs(plus), ..self }
    }

    pub(super) fn minus(self, minus: f64) -> Policy {
        Policy { minus: secs(minus), ..self }
    }

    pub(super) fn pad(self, pad: f64) -> Policy {
        Policy { pad: secs(pad), ..self }
    }

    /// The curve stands still from retry `n` on.
    pub(super) fn until(mut self, n: u32) -> Policy {
        self.counter.until = Some(n);
        self
    }

    pub(super) fn first(self, first: First) -> Policy {
        Policy { first, ..self }
    }

    pub(super) fn floor(self, floor: f64) -> Policy {
        Policy { floor: Some(secs(floor)), ..self }
    }

    pub(super) fn cap(self, cap: f64, order: Order) -> Policy {
        Policy { cap: Some(secs(cap)), order, ..self }
    }

    pub(super) fn jitter(self, jitter: Jitter) -> Policy {
        Policy { jitter, ..self }
    }

    /// `x · U[p, q)`.
    pub(super) fn times(self, p: f64, q: f64) -> Policy {
        self.jitter(Jitter::Row(Row::of(p, q)))
    }

    /// `x · U[p, q]`.
    pub(super) fn times_closed(self, p: f64, q: f64) -> Policy {
        self.jitter(Jitter::Row(Row { closed: true, ..Row::of(p, q) }))
    }

    /// `x + U · (w0 + w1 · n)`.
    pub(super) fn widened(self, w0: f64, w1: f64) -> Policy {
        self.jitter(Jitter::Row(Row { w0: secs(w0), w1: secs(w1), ..Row::NONE }))
    }

    pub(super) fn at_cap(mut self, p: f64, q: f64, drawn: bool) -> Policy {
        if let Jitter::Row(row) = &mut self.jitter {
            row.at_cap = Some(AtCap { p, q, drawn });
        }
        self
    }

    pub(super) fn grain(self, unit: Duration, ends: Ends) -> Policy {
        Policy { grain: Grain { ends, ..Grain::of(unit) }, ..self }
    }

    /// Retry n is a whole number of n seconds above its least.
    pub(super) fn growing_grain(self, growth: Duration) -> Policy {
        Policy { grain: Grain { growth, ..Grain::NONE }, ..self }
    }

    pub(super) fn share_grain(self, share: f64) -> Policy {
        Policy { grain: Grain { share, ends: Ends::Both, ..Grain::NONE }, ..self }
    }

    pub(super) fn retries(self, most: u32) -> Policy {
        Policy { max_retries: Some(most), ..self }
    }

    /// No limit on their number, but on their time.
    pub(super) fn within(mut self, elapsed: f64, with_delay: bool) -> Policy {
        (self.limit.elapsed, self.limit.with_delay) = (Some(secs(elapsed)), with_delay);
        let most = self.max_retries.unwrap_or(ENDLESS);
        self.retries(most)
    }

    /// A promoter looks every so often.
    pub(super) fn promoted(mut self, every: f64) -> Policy {
        self.clock.quantum = secs(every);
        self
    }

    pub(super) fn since_claim(mut self) -> Policy {
        self.clock.base = ClockBase::Claim;
        self
    }

    /// Retries these and nothing else: `429`, `5xx`, `timeout`, `refused`, `reset`.
    pub(super) fn only(self, patterns: &[&str]) -> Policy {
        Policy { classes: Classes { retry: parsed(patterns), ..self.classes }, ..self }
    }

    pub(super) fn but(self, patterns: &[&str]) -> Policy {
        Policy { classes: Classes { fatal: parsed(patterns), ..self.classes }, ..self }
    }

    pub(super) fn throttled(self, patterns: &[&str]) -> Policy {
        Policy { classes: Classes { throttled: parsed(patterns), ..self.classes }, ..self }
    }

    pub(super) fn heeds(mut self, rule: RetryAfter, statuses: &[u16]) -> Policy {
        (self.retry_after, self.heed.statuses) = (rule, statuses.to_vec());
        self
    }

    /// A hint makes any failure worth a retry.
    pub(super) fn heeds_any(mut self) -> Policy {
        self.heed.any_failure = true;
        self
    }

    pub(super) fn budget(self, rule: BudgetRule) -> Policy {
        Policy { budget: Some(Budget { rule, scope: Scope::Process }), ..self }
    }

    /// AWS's quota: 500 tokens.
    pub(super) fn quota(self, cost: f64, timeout_cost: f64, throttled_cost: f64) -> Policy {
        self.budget(BudgetRule::Tokens {
            max: 500.0,
            cost,
            timeout_cost,
            throttled_cost,
            refill: 1.0,
            refund: true,
            threshold: -1.0,
            on_failure: false,
        })
    }

    /// Finagle's and tower's: a fifth of all calls and ten a second, over ten seconds.
    pub(super) fn fifth(self) -> Policy {
        self.budget(BudgetRule::Ratio { share: 0.2, floor: 10.0, window: secs(10.0) })
    }
}

fn parsed(patterns: &[&str]) -> Vec<Pattern> {
    patterns.iter().map(|text| Pattern::parse(text).expect("the table names patterns that there are")).collect()
}
