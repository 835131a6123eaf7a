//! `[downstream.collapse]`: how its capacity falls under load.

use std::time::Duration;

use super::error::Problem;
use super::file::Check;
use super::table::{Section, table};
use super::value::{Count, Factor, Length, Offset, Share};
use crate::downstream::Collapse;

table! {
    /// How its capacity falls under load, so that retries alone can keep it down.
    #[schemars(rename = "Collapse")]
    RawCollapse in "[downstream.collapse]" {
        /// Calls in the house, worked on or waiting, from which each one more makes it slower; left out: none does.
        #[schemars(default)]
        knee: Count<0, 1_000_000>,
        /// How much slower each call beyond the knee makes it, as a share of the service time.
        per_call: Share = 0.02,
        /// The most that it is slower by.
        most: Factor = 10.0,
        /// Server time that turning a call away takes.
        error_cost: Offset = "0s",
        /// Calls in the house at which it falls over; left out: it never does.
        #[schemars(default)]
        falls_at: Count<1, 1_000_000>,
        /// How long it is down when it has fallen over.
        back_after: Length = "5s",
    }
}

/// The settings, for a service that holds so many calls.
pub(super) fn check(section: &Section<RawCollapse>, holds: u64, check: &mut Check<'_>) -> Collapse {
    let (raw, header) = (&section.raw, &section.header);
    let error_cost = raw.error_cost.or(Offset(Duration::ZERO)).0;
    let wrong = raw.knee.is_wrong() || raw.falls_at.is_wrong() || raw.error_cost.is_wrong();
    if raw.knee.value().is_none() && raw.falls_at.value().is_none() && error_cost.is_zero() && !wrong {
        let problem = Problem::new(&header.place, "this service does not collapse: nothing in the table makes it");
        check.report(problem.help("give it a `knee`, an `error_cost` or a `falls_at`, or take the table out"));
    }
    for (key, field) in [
        ("knee", raw.knee.given().map(|at| (at.value.0, &at.place))),
        ("falls_at", raw.falls_at.given().map(|at| (at.value.0, &at.place))),
    ] {
        if let Some((calls, place)) = field.filter(|(calls, _)| *calls > holds && holds > 0) {
            let message = format!("`{key}` ({calls}) is never reached: servers and queue hold {holds} calls");
            check.report(Problem::new(place, message).help(format!("lower `{key}` or raise `queue`")));
        }
    }
    Collapse {
        knee: raw.knee.value().map_or(u32::MAX, |knee| knee.0 as u32),
        per_call: raw.per_call.or(Share(0.02)).0,
        most: raw.most.or(Factor(10.0)).0,
        error_cost,
        falls_at: raw.falls_at.value().map(|calls| calls.0 as u32),
        back_after: raw.back_after.or(Length(Duration::from_secs(5))).0,
    }
}
