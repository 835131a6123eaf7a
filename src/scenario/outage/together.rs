//! Outages that overlap: allowed, and their order is defined; but one that can never act is a mistake.

use crate::downstream::Outage;
use crate::scenario::error::Problem;
use crate::scenario::file::Check;
use crate::scenario::table::Place;
use crate::time::show;

/// Refuses a pair of which one answers every call before it reaches the other.
pub(super) fn check(one: &Outage, one_place: &Place, other: &Outage, other_place: &Place, check: &mut Check<'_>) {
    let (first, first_place, second, second_place) =
        if (other.mode.layer(), other.window.from) < (one.mode.layer(), one.window.from) {
            (other, other_place, one, one_place)
        } else {
            (one, one_place, other, other_place)
        };
    let covers = first.window.from <= second.window.from && second.window.until <= first.window.until;
    let once = first.every.is_none() && second.every.is_none();
    if !(first.mode.is_total() && first.is_certain() && covers && once) {
        return;
    }
    let span = |outage: &Outage| {
        let (from, until) = (outage.window.from.since_start(), outage.window.until.since_start());
        format!("`{}` from {} to {}", outage.mode.name(), show(from), show(until))
    };
    let (answers, never) = (first.mode.name(), second.mode.name());
    let problem = Problem::new(second_place, format!("this `{never}` never acts: `{answers}` ends every call before it"))
        .label(first_place, span(first))
        .label(second_place, span(second))
        .help(format!("move one of them, or let `{answers}` strike a share of the calls with `probability`"));
    check.report(problem);
}
