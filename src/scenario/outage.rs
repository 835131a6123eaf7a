//! `[[downstream.outage]]`: when the downstream is down, and how.

use std::time::Duration;

use super::error::Problem;
use super::file::Check;
use super::table::{Place, Section, table};
use super::value::{Count, Factor, Length, Offset, Rate, Share, WholeSeconds};
use super::words::words;
use crate::downstream::{Mode, Outage};
use crate::time::{Window, show};

table! {
    /// A span of a run in which the downstream misbehaves.
    #[schemars(rename = "Outage")]
    RawOutage in "[[downstream.outage]]" {
        /// When it begins, from the run's start.
        at: Offset,
        /// How long it lasts; it ends before the horizon.
        lasts: Length,
        /// How it misbehaves: 503 at once, nobody listens, never answers, slower and partly failing, or 429 beyond a rate.
        mode: Kind,
        /// `unavailable` and `rate-limit`: the Retry-After sent along, in whole seconds; `rate-limit` sends 1s if not given.
        #[schemars(default)]
        retry_after: WholeSeconds,
        /// `brownout`: share of calls that fail on top of the base error rate.
        error_rate: Share = 0.5,
        /// `brownout`: factor on the latency.
        slowdown: Factor = 2.0,
        /// `rate-limit`: calls allowed per time, such as `50/s`.
        #[schemars(default)]
        rate: Rate,
        /// `rate-limit`: calls allowed at once after a quiet time.
        burst: Count<1, 1_000_000> = 1,
    }
}

words! {
    /// How a downstream misbehaves.
    Kind {
        Unavailable = "unavailable",
        Refuse = "refuse",
        Hang = "hang",
        Brownout = "brownout",
        RateLimit = "rate-limit",
    }
}

/// The outages in order of time.
pub(super) fn check(sections: &[Section<RawOutage>], check: &mut Check<'_>) -> Vec<Outage> {
    let mut placed: Vec<(Outage, Place)> = Vec::new();
    for section in sections {
        let Some(outage) = check_one(section, check) else { continue };
        for (earlier, place) in &placed {
            check_together(earlier, place, &outage, &section.header.place, check);
        }
        placed.push((outage, section.header.place.clone()));
    }
    let mut outages: Vec<Outage> = placed.into_iter().map(|(outage, _)| outage).collect();
    outages.sort_by_key(|outage| outage.window.from);
    outages
}

fn check_one(section: &Section<RawOutage>, check: &mut Check<'_>) -> Option<Outage> {
    let (raw, header) = (&section.raw, &section.header);
    let at = raw.at.need("at", header, check.problems);
    let lasts = raw.lasts.need("lasts", header, check.problems);
    let mode = mode(section, check);
    let (at, lasts) = (at?, lasts?);
    let end = at.value.0.saturating_add(lasts.value.0);
    if check.is_over(end) {
        let problem = Problem::new(&lasts.place, format!("this outage ends at {}, after the run", show(end)))
            .label(&at.place, "starts here")
            .label(&lasts.place, "lasts this long");
        let problem = check.stops(problem).help("raise `horizon`, start the outage earlier or make it shorter");
        check.report(problem);
    }
    Some(Outage { window: Window::starting(at.value.0, lasts.value.0), mode: mode? })
}

fn mode(section: &Section<RawOutage>, check: &mut Check<'_>) -> Option<Mode> {
    let (raw, header) = (&section.raw, &section.header);
    let problems = &mut *check.problems;
    let mut takes = |mode: &str, own: &[&'static str]| {
        let taken = [&["at", "lasts", "mode"], own].concat();
        header.takes(&format!("`mode = \"{mode}\"`"), &taken, problems);
    };
    match raw.mode.value() {
        Some(Kind::Unavailable) => {
            takes("unavailable", &["retry_after"]);
            Some(Mode::Unavailable { retry_after: raw.retry_after.value().map(|after| after.0) })
        }
        Some(Kind::Refuse) => {
            takes("refuse", &[]);
            Some(Mode::Refuse)
        }
        Some(Kind::Hang) => {
            takes("hang", &[]);
            Some(Mode::Hang)
        }
        Some(Kind::Brownout) => {
            takes("brownout", &["error_rate", "slowdown"]);
            Some(Mode::Brownout { error_rate: raw.error_rate.or(Share(0.5)).0, slowdown: raw.slowdown.or(Factor(2.0)).0 })
        }
        Some(Kind::RateLimit) => {
            takes("rate-limit", &["rate", "burst", "retry_after"]);
            Some(Mode::RateLimit {
                rate: raw.rate.need("rate", header, problems)?.value.0,
                burst: raw.burst.or(Count(1)).0 as u32,
                retry_after: raw.retry_after.or(WholeSeconds(Duration::from_secs(1))).0,
            })
        }
        None => {
            raw.mode.need("mode", header, problems);
            None
        }
    }
}

/// Refuses two outages that can't both be true at a moment that they share.
fn check_together(one: &Outage, one_place: &Place, other: &Outage, other_place: &Place, check: &mut Check<'_>) {
    let same = one.mode.name() == other.mode.name();
    if !one.window.overlaps(&other.window) || !(same || one.mode.is_total() || other.mode.is_total()) {
        return;
    }
    let span = |outage: &Outage| {
        let (from, until) = (outage.window.from.since_start(), outage.window.until.since_start());
        format!("`{}` from {} to {}", outage.mode.name(), show(from), show(until))
    };
    let message = if same {
        format!("two outages of mode `{}` overlap", one.mode.name())
    } else {
        format!("the outages `{}` and `{}` overlap and contradict each other", one.mode.name(), other.mode.name())
    };
    let problem = Problem::new(other_place, message)
        .label(one_place, span(one))
        .label(other_place, span(other))
        .help("end one before the other begins; only `brownout` and `rate-limit` may overlap each other");
    check.report(problem);
}
