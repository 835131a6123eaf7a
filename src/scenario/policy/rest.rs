//! Clock, limits, classes of failure and hints.

use std::time::Duration;

use super::super::error::Problem;
use super::super::file::Check;
use super::super::table::Section;
use super::super::value::{Flag, Length, Offset, Share};
use super::{Clock, Heed, Policy, refuse_others};
use crate::policy::{self, Class, ClockBase, Pattern, RetryAfter};
use crate::time::show;

pub(super) fn apply(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let raw = &section.raw;
    if let Some(clock) = raw.clock.value() {
        policy.clock.base = if *clock == Clock::Claim { ClockBase::Claim } else { ClockBase::Failure };
    }
    if let Some(quantum) = raw.quantum.value() {
        policy.clock.quantum = quantum.0;
    }
    limits(section, policy, check);
    classes(raw, policy, check);
    hints(section, policy, check);
    counts(section, policy, check);
}

fn limits(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let raw = &section.raw;
    if let Some(retries) = raw.max_retries.value() {
        policy.max_retries = Some(retries.0 as u32);
    }
    if let Some(elapsed) = raw.max_elapsed.value() {
        policy.limit.elapsed = Some(elapsed.0);
    }
    if let Some(with_delay) = raw.elapsed_with_delay.given() {
        policy.limit.with_delay = with_delay.value.0;
        if policy.limit.elapsed.is_none() {
            let problem = Problem::new(&with_delay.key, "`elapsed_with_delay` means nothing without `max_elapsed`");
            check.report(problem.help("write `max_elapsed = \"15m\"`, for example, or leave it out"));
        }
    }
    if let Some(at_cap) = raw.end_at_cap.given() {
        policy.limit.at_cap = at_cap.value.0;
        if at_cap.value.0 && policy.cap.is_none() {
            let problem = Problem::new(&at_cap.key, "`end_at_cap` needs a `cap` to end at");
            check.report(problem.help("add `cap = \"60s\"`, for example, or leave it out"));
        }
    }
}

fn classes(raw: &Policy, policy: &mut policy::Policy, check: &mut Check<'_>) {
    if let Some(classify) = raw.classify.value() {
        policy.classify = classify.0;
    }
    let lists = [
        (&raw.success_on, "success_on", Class::Success),
        (&raw.retry_on, "retry_on", Class::Retry),
        (&raw.throttled_on, "throttled_on", Class::Throttled),
        (&raw.fatal_on, "fatal_on", Class::Fatal),
        (&raw.uncounted_on, "uncounted_on", Class::Uncounted),
    ];
    let mut seen: Vec<(Pattern, &str, &super::super::table::Place)> = Vec::new();
    for (field, key, class) in lists {
        let Some(given) = field.given() else { continue };
        for pattern in &given.value.0 {
            if let Some((_, other, place)) = seen.iter().find(|(known, ..)| known == pattern) {
                let problem = Problem::new(&given.place, format!("`{pattern}` is in `{key}` and in `{other}`"))
                    .label(place, "one class")
                    .label(&given.place, "and another")
                    .help("leave it in one of the two");
                check.report(problem);
            }
            seen.push((*pattern, key, &given.place));
        }
        let list = match class {
            Class::Success => &mut policy.classes.success,
            Class::Retry => &mut policy.classes.retry,
            Class::Throttled => &mut policy.classes.throttled,
            Class::Fatal => &mut policy.classes.fatal,
            Class::Uncounted => &mut policy.classes.uncounted,
        };
        list.clone_from(&given.value.0);
    }
}

/// The keys of hints.
const HINTS: [&str; 6] = ["hint_above", "hint_low", "hint_high", "hint_longest", "hint_at_least", "hint_share"];

fn hints(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let raw = &section.raw;
    if let Some(heed) = raw.retry_after.value() {
        let taken: &[&str] = match heed {
            Heed::Ignore | Heed::AtLeast | Heed::Replace | Heed::Restart => &[],
            Heed::Within => &["hint_above"],
            Heed::Between => &["hint_low", "hint_high"],
            Heed::GiveUpAbove => &["hint_longest", "hint_at_least"],
            Heed::Spread => &["hint_share", "hint_longest"],
        };
        refuse_others(section, &HINTS, taken, &format!("with `retry_after = {:?}`", heed.word()), check);
        policy.retry_after = rule(raw, *heed, check);
    } else if !raw.retry_after.is_wrong() {
        refuse_others(section, &HINTS, &[], "without a `retry_after`", check);
    }
    if let Some(statuses) = raw.hint_on.value() {
        policy.heed.statuses.clone_from(&statuses.0);
    }
    if let Some(any) = raw.hint_on_any.value() {
        policy.heed.any_failure = any.0;
    }
    let written = section.header.key("hint_on").or(section.header.key("hint_on_any"));
    if let (Some(place), RetryAfter::Ignore) = (written, policy.retry_after) {
        let problem = Problem::new(place, "which hints count means nothing where `retry_after` ignores them all");
        check.report(problem.help("write `retry_after = \"at-least\"`, for example, or leave it out"));
    }
}

fn rule(raw: &Policy, heed: Heed, check: &mut Check<'_>) -> RetryAfter {
    let longest = raw.hint_longest.or(Length(Duration::from_secs(300))).0;
    match heed {
        Heed::Ignore => RetryAfter::Ignore,
        Heed::AtLeast => RetryAfter::AtLeast,
        Heed::Replace => RetryAfter::Replace,
        Heed::Restart => RetryAfter::Restart,
        Heed::Within => RetryAfter::Within { above: raw.hint_above.or(Offset(Duration::from_secs(5))).0 },
        Heed::GiveUpAbove => RetryAfter::GiveUpAbove { longest, at_least: raw.hint_at_least.or(Flag(false)).0 },
        Heed::Spread => RetryAfter::Spread { share: raw.hint_share.or(Share(0.5)).0, longest },
        Heed::Between => {
            let low = raw.hint_low.or(Offset(Duration::ZERO)).0;
            let high = raw.hint_high.or(Length(Duration::from_secs(21_600))).0;
            if let Some(at) = raw.hint_low.given().filter(|_| low > high) {
                let message = format!("`hint_low` ({}) is above `hint_high` ({})", show(low), show(high));
                check.report(Problem::new(&at.place, message).help("lower `hint_low` or raise `hint_high`"));
            }
            RetryAfter::Between { low, high }
        }
    }
}

/// A way of counting that a job's row does not know needs a limit that is not the row's.
fn counts(section: &Section<Policy>, policy: &policy::Policy, check: &mut Check<'_>) {
    if policy.max_retries.is_some() {
        return;
    }
    let keys = [
        ("uncounted_on", !policy.classes.uncounted.is_empty()),
        ("count_by", policy.counter.by_failure),
        ("retry_after", policy.retry_after == RetryAfter::Restart),
    ];
    for (key, _) in keys.iter().filter(|(_, apart)| *apart) {
        if let Some(place) = section.header.key(key) {
            let problem = Problem::new(place, format!("`{key}` counts retries apart from the jobs' own limits"));
            check.report(problem.help("add `max_retries = 10`, for example"));
        }
    }
}
