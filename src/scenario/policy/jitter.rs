//! The keys of chance: jitter, what becomes of it at the cap, and the grain.

use std::time::Duration;

use super::super::error::Problem;
use super::super::file::Check;
use super::super::table::Section;
use super::super::value::{Flag, Length};
use super::{Chance, Curve, GrainEnds, Policy};
use crate::policy::{self, AtCap, Backoff, Ends, Grain, Jitter, Row};

/// The keys of jitters, and which jitters take each.
const KEYS: [(&str, &[&str]); 7] = [
    ("jitter_share", &["proportional", "upward", "downward"]),
    ("jitter_spread", &["additive"]),
    ("jitter_growth", &["growing"]),
    ("jitter_low", &["between"]),
    ("jitter_high", &["between"]),
    ("jitter_bound", &["decorrelated"]),
    ("jitter_rising", &["decorrelated"]),
];

pub(super) fn apply(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let raw = &section.raw;
    if !raw.jitter.is_wrong() {
        foreign_keys(section, check);
        if raw.jitter.given().is_some() || raw.preset.given().is_none() {
            something_to_randomise(raw, policy, check);
            policy.jitter = jitter(section, check).unwrap_or(Jitter::None);
        }
    }
    at_cap(section, policy, check);
    if let Some(unit) = raw.grain.value() {
        policy.grain = Grain::of(unit.0);
    }
    if let Some(ends) = raw.grain_ends.given() {
        policy.grain.ends = if ends.value == GrainEnds::Both { Ends::Both } else { Ends::Down };
        if policy.grain == (Grain { ends: policy.grain.ends, ..Grain::NONE }) {
            let problem = Problem::new(&ends.key, "`grain_ends` means nothing without a `grain`");
            check.report(problem.help("write `grain = \"1s\"`, for example, or leave `grain_ends` out"));
        }
    }
}

/// Reports keys that this jitter does not take, each once.
fn foreign_keys(section: &Section<Policy>, check: &mut Check<'_>) {
    let word = section.raw.jitter.value().map(|chance| chance.word());
    let choice = match word {
        None => "without a `jitter`".to_owned(),
        Some(word) => format!("with `jitter = {word:?}`"),
    };
    for (key, takers) in KEYS.iter().filter(|(_, takers)| word.is_none_or(|word| !takers.contains(&word))) {
        if let Some(place) = section.header.key(key) {
            let problem = Problem::new(place, format!("`{key}` means nothing {choice}"));
            check.report(problem.help(format!("write `jitter = \"{}\"`, or leave `{key}` out", takers[0])));
        }
    }
}

fn jitter(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Jitter> {
    let (raw, header) = (&section.raw, &section.header);
    match raw.jitter.or(Chance::None) {
        Chance::None => Some(Jitter::None),
        Chance::Full => Some(Jitter::Full),
        Chance::Equal => Some(Jitter::Equal),
        Chance::Timeline => Some(Jitter::Timeline),
        Chance::Decorrelated => {
            Some(Jitter::Decorrelated { bound: raw.jitter_bound.or(Flag(false)).0, rising: raw.jitter_rising.or(Flag(false)).0 })
        }
        Chance::Additive => {
            Some(Jitter::Additive { spread: raw.jitter_spread.need("jitter_spread", header, check.problems)?.value.0 })
        }
        Chance::Growing => {
            let Length(w1) = raw.jitter_growth.need("jitter_growth", header, check.problems)?.value;
            Some(Jitter::Row(Row { w1, ..Row::NONE }))
        }
        Chance::Proportional => Some(Jitter::Proportional { share: share(section, check)? }),
        Chance::Upward => share(section, check).map(|share| Jitter::Row(Row::of(1.0, 1.0 + share))),
        Chance::Downward => share(section, check).map(|share| Jitter::Row(Row::of(1.0 - share, 1.0))),
        Chance::Between => {
            let (low, high) = (
                raw.jitter_low.need("jitter_low", header, check.problems),
                raw.jitter_high.need("jitter_high", header, check.problems),
            );
            let (low, high) = (low?, high?);
            if low.value.0 >= high.value.0 {
                let message = format!("`jitter_low` ({}) is not below `jitter_high` ({})", low.value.0, high.value.0);
                let problem =
                    Problem::new(&low.place, message).label(&low.place, "the least factor").label(&high.place, "the greatest");
                check.report(problem.help("write the smaller factor as `jitter_low`, such as 0.8 and 1.3"));
            }
            Some(Jitter::Row(Row::of(low.value.0, high.value.0)))
        }
    }
}

fn share(section: &Section<Policy>, check: &mut Check<'_>) -> Option<f64> {
    let share = section.raw.jitter_share.need("jitter_share", &section.header, check.problems)?;
    if share.value.0 == 0.0 {
        let problem = Problem::new(&share.place, "`jitter_share` is zero, which randomises nothing");
        check.report(problem.help("write a share above 0, such as 0.2, or `jitter = \"none\"`"));
    }
    Some(share.value.0)
}

/// Refuses jitter on a wait that is always zero, and decorrelated jitter that would grow from zero.
fn something_to_randomise(raw: &Policy, policy: &policy::Policy, check: &mut Check<'_>) {
    let Some(jitter) = raw.jitter.given() else { return };
    let scales = !matches!(jitter.value, Chance::None | Chance::Additive | Chance::Growing);
    let pads = !policy.plus.is_zero();
    if policy.backoff == Backoff::None && scales && !pads {
        let (what, place) = match (raw.kind.given(), raw.preset.given()) {
            (Some(kind), _) if kind.value == Curve::None => ("`kind = \"none\"`".to_owned(), &kind.place),
            (None, Some(preset)) => (format!("`preset = {:?}`", preset.value.0), &preset.place),
            _ => return,
        };
        let problem = Problem::new(&jitter.place, format!("this jitter scales the wait, and with {what} there is none"))
            .label(place, "always zero")
            .label(&jitter.place, "a part of zero is zero")
            .help("write `jitter = \"additive\"` with a `jitter_spread`, or a `kind` that waits");
        check.report(problem);
    }
    let zero_base =
        raw.base.given().filter(|base| base.value.0 == Duration::ZERO && matches!(policy.backoff, Backoff::Linear { .. }));
    if let Some(base) = zero_base.filter(|_| jitter.value == Chance::Decorrelated) {
        let problem = Problem::new(&base.place, "decorrelated jitter grows from `base`, which is zero")
            .label(&jitter.place, "three times the last delay at most")
            .label(&base.place, "so it never leaves zero")
            .help("write a `base` above zero");
        check.report(problem);
    }
}

fn at_cap(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let (raw, header) = (&section.raw, &section.header);
    let Some(place) = header.key("at_cap_low").or(header.key("at_cap_high")) else { return };
    let (low, high) =
        (raw.at_cap_low.need("at_cap_low", header, check.problems), raw.at_cap_high.need("at_cap_high", header, check.problems));
    let (Some(low), Some(high)) = (low, high) else { return };
    if low.value.0 > high.value.0 {
        let message = format!("`at_cap_low` ({}) is above `at_cap_high` ({})", low.value.0, high.value.0);
        check.report(Problem::new(&low.place, message).help("write the smaller factor as `at_cap_low`"));
    }
    if policy.cap.is_none() {
        let problem = Problem::new(place, "there is no cap for `at_cap_low` and `at_cap_high`");
        check.report(problem.help("add `cap = \"60s\"`, for example"));
    }
    if !policy.jitter.is_stateless() {
        check.report(
            Problem::new(place, "this jitter has no other factors at the cap").help("leave `at_cap_low` and `at_cap_high` out"),
        );
    }
    let at_cap = Some(AtCap { p: low.value.0, q: high.value.0, drawn: false });
    policy.jitter = Jitter::Row(Row { at_cap, ..policy.jitter.row() });
}
