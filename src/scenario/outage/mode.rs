//! The mode of an outage, and the keys that go with it.

use std::time::Duration;

use super::{Form, Kind, Limiter, RawOutage, Scope, has_ramps, plain};
use crate::downstream::{Hint, LimiterKind, Mode, RateLimit};
use crate::scenario::error::Problem;
use crate::scenario::file::Check;
use crate::scenario::table::Section;
use crate::scenario::value::{Count, Factor, Length, RetryHint, Share, SomeShare};

/// The mode; reports keys that it does not take.
pub(super) fn check(section: &Section<RawOutage>, check: &mut Check<'_>) -> Option<Mode> {
    let (raw, header) = (&section.raw, &section.header);
    let kind = raw.mode.need("mode", header, check.problems)?.value;
    let mut taken = vec!["at", "lasts", "mode", "every"];
    if kind != Kind::Refuse {
        taken.extend(["type", "probability"]);
    }
    if has_ramps(kind) {
        taken.extend(["ramp_in", "ramp_out"]);
    }
    taken.extend(own_keys(kind, raw));
    header.takes(&format!("`mode = \"{}\"`", word(kind)), &taken, check.problems);
    match kind {
        Kind::Unavailable => Some(Mode::Unavailable { retry_after: constant_hint(raw, check), dated: dated(raw) }),
        Kind::SlowBody => Some(Mode::SlowBody { takes: raw.takes.or(Length(Duration::from_secs(10))).0 }),
        Kind::Brownout => Some(Mode::Brownout {
            error_rate: raw.error_rate.or(Share(0.5)).0,
            slowdown: raw.slowdown.or(Factor(2.0)).0,
            servers: raw.servers.value().map(|servers| servers.0 as u32),
        }),
        Kind::RateLimit => rate_limit(section, check).map(Mode::RateLimit),
        Kind::Permanent => Some(Mode::Permanent { code: raw.code.or(Count(422)).0 as u16 }),
        Kind::SlowStart => Some(Mode::SlowStart { from: raw.from.or(SomeShare(0.1)).0 }),
        kind => plain(kind),
    }
}

fn own_keys(kind: Kind, raw: &RawOutage) -> &'static [&'static str] {
    match kind {
        Kind::Unavailable => &["retry_after", "retry_after_as"],
        Kind::Brownout => &["error_rate", "slowdown", "servers"],
        Kind::SlowBody => &["takes"],
        Kind::Permanent => &["code"],
        Kind::SlowStart => &["from"],
        Kind::RateLimit => match raw.limiter.or(Limiter::TokenBucket) {
            Limiter::TokenBucket => &["rate", "limiter", "burst", "scope", "retry_after", "retry_after_as"],
            Limiter::FixedWindow | Limiter::SlidingWindow => {
                &["rate", "limiter", "per", "scope", "retry_after", "retry_after_as"]
            }
        },
        _ => &[],
    }
}

fn word(kind: Kind) -> &'static str {
    Kind::WORDS[kind as usize]
}

fn dated(raw: &RawOutage) -> bool {
    raw.retry_after_as.or(Form::Seconds) == Form::Date
}

/// The hint of a service that is down and does not know for how long.
fn constant_hint(raw: &RawOutage, check: &mut Check<'_>) -> Option<Duration> {
    let hint = raw.retry_after.given()?;
    match hint.value.0 {
        Hint::After(after) => Some(after),
        Hint::None => None,
        Hint::Reset => {
            let problem = Problem::new(&hint.place, "`retry_after` is \"reset\", and only a rate limit has a reset");
            check.report(problem.help("write whole seconds, such as \"3s\", or \"none\""));
            None
        }
    }
}

fn rate_limit(section: &Section<RawOutage>, check: &mut Check<'_>) -> Option<RateLimit> {
    let (raw, header) = (&section.raw, &section.header);
    let rate = raw.rate.need("rate", header, check.problems)?;
    let (limiter, per) = (raw.limiter.or(Limiter::TokenBucket), raw.per.or(Length(Duration::from_secs(1))).0);
    if limiter != Limiter::TokenBucket && rate.value.0 * per.as_secs_f64() < 1.0 {
        let problem = Problem::new(&rate.place, "not one call is allowed in a window of this length");
        check.report(problem.help("raise `rate`, or make `per` longer: `rate` times `per` must be at least 1"));
    }
    Some(RateLimit {
        limiter: match limiter {
            Limiter::TokenBucket => LimiterKind::TokenBucket,
            Limiter::FixedWindow => LimiterKind::FixedWindow,
            Limiter::SlidingWindow => LimiterKind::SlidingWindow,
        },
        rate: rate.value.0,
        burst: raw.burst.or(Count(1)).0 as u32,
        per,
        per_caller: raw.scope.or(Scope::Shared) == Scope::Caller,
        retry_after: raw.retry_after.or(RetryHint(Hint::After(Duration::from_secs(1)))).0,
        dated: dated(raw),
    })
}
