//! `[policy.NAME]`: how a queue retries.

use std::time::Duration;

use super::NamedPolicy;
use super::error::Problem;
use super::file::Check;
use super::table::{At, Named, Section, table};
use super::value::{Count, Factor, Flag, Length, NAME_HELP, Offset, Share, is_name};
use super::words::words;
use crate::policy::{self, Backoff, Jitter};
use crate::time::show;

table! {
    /// How a queue retries.
    Policy in "[policy.NAME]" {
        /// The curve: no wait, the same wait, `base + step · (n − 1)`, or `base · factor^(n − 1)` before retry n.
        kind: Curve,
        /// `constant`: the wait.
        #[schemars(default)]
        delay: Length,
        /// `linear` and `exponential`: the wait before the first retry.
        #[schemars(default)]
        base: Offset,
        /// `linear`: what each further retry adds.
        #[schemars(default)]
        step: Length,
        /// `exponential`: growth from retry to retry.
        factor: Factor = 2.0,
        /// `linear` and `exponential`: the wait never exceeds this before jitter is applied. No cap if not given.
        #[schemars(default)]
        cap: Length,
        /// How the wait is randomised.
        jitter: Chance = "none",
        /// `jitter = "proportional"`: half the relative width, so that 0.2 is ±20 %.
        #[schemars(default)]
        jitter_share: Share,
        /// `jitter = "additive"`: the width.
        #[schemars(default)]
        jitter_spread: Length,
        /// Retries allowed, in place of each job's own number.
        #[schemars(default)]
        max_retries: Count<0, 1000>,
        /// Tell permanent failures from transient ones, and give up at once on the permanent.
        classify: Flag = true,
        /// What a server's Retry-After does: nothing, a lower bound of the delay, or the delay itself.
        retry_after: Heed = "ignore",
    }
}

words! {
    /// The curve.
    Curve {
        None = "none",
        Constant = "constant",
        Linear = "linear",
        Exponential = "exponential",
    }
}

words! {
    /// How a wait is randomised.
    Chance {
        None = "none",
        Full = "full",
        Equal = "equal",
        Proportional = "proportional",
        Additive = "additive",
        Decorrelated = "decorrelated",
    }
}

words! {
    /// What a Retry-After does.
    Heed {
        Ignore = "ignore",
        AtLeast = "at-least",
        Replace = "replace",
    }
}

/// The keys that every policy takes.
const COMMON: [&str; 5] = ["kind", "jitter", "max_retries", "classify", "retry_after"];

/// The policies in the order of the file.
pub(super) fn check(policies: &At<Named<Policy>>, check: &mut Check<'_>) -> Vec<NamedPolicy> {
    let named = &policies.value.0;
    if named.is_empty() {
        let problem = Problem::new(&policies.place, "there is no policy, and a run needs one");
        check.report(problem.help("write a table such as [policy.none] with `kind = \"none\"`"));
    }
    let mut checked = Vec::new();
    for (name, section) in named {
        if !is_name(&name.value) {
            check.report(Problem::new(&name.key, format!("the policy's name {:?} is no name", name.value)).help(NAME_HELP));
        }
        checked.push(NamedPolicy { name: name.value.clone(), policy: check_one(section, check) });
    }
    checked
}

fn check_one(section: &Section<Policy>, check: &mut Check<'_>) -> policy::Policy {
    let raw = &section.raw;
    check_foreign_keys(section, check);
    let backoff = backoff(section, check).unwrap_or(Backoff::None);
    check_cap(raw, check);
    policy::Policy {
        jitter: jitter(section, check).unwrap_or(Jitter::None),
        backoff,
        cap: raw.cap.value().map(|cap| cap.0),
        max_retries: raw.max_retries.value().map(|retries| retries.0 as u32),
        classify: raw.classify.or(Flag(true)).0,
        retry_after: match raw.retry_after.or(Heed::Ignore) {
            Heed::Ignore => policy::RetryAfter::Ignore,
            Heed::AtLeast => policy::RetryAfter::AtLeast,
            Heed::Replace => policy::RetryAfter::Replace,
        },
        ..policy::Policy::default()
    }
}

/// Reports keys that neither the curve nor the jitter takes, each once.
fn check_foreign_keys(section: &Section<Policy>, check: &mut Check<'_>) {
    let of_jitter = ["jitter_share", "jitter_spread"];
    let (curve, own): (&str, &[&str]) = match section.raw.kind.value() {
        Some(Curve::None) => ("`kind = \"none\"`", &[]),
        Some(Curve::Constant) => ("`kind = \"constant\"`", &["delay"]),
        Some(Curve::Linear) => ("`kind = \"linear\"`", &["base", "step", "cap"]),
        Some(Curve::Exponential) => ("`kind = \"exponential\"`", &["base", "factor", "cap"]),
        None => return,
    };
    section.header.takes(curve, &[&COMMON[..1], own, &COMMON[1..], of_jitter.as_slice()].concat(), check.problems);
    if section.raw.jitter.is_wrong() {
        return;
    }
    let (jitter, taken): (&str, &[&str]) = match section.raw.jitter.or(Chance::None) {
        Chance::None if section.raw.jitter.given().is_none() => ("without a `jitter`", &[]),
        Chance::None => ("with `jitter = \"none\"`", &[]),
        Chance::Full => ("with `jitter = \"full\"`", &[]),
        Chance::Equal => ("with `jitter = \"equal\"`", &[]),
        Chance::Proportional => ("with `jitter = \"proportional\"`", &["jitter_share"]),
        Chance::Additive => ("with `jitter = \"additive\"`", &["jitter_spread"]),
        Chance::Decorrelated => ("with `jitter = \"decorrelated\"`", &[]),
    };
    for key in of_jitter.into_iter().filter(|key| !taken.contains(key)) {
        if let Some(place) = section.header.key(key) {
            let needs = if key == "jitter_share" { "proportional" } else { "additive" };
            let problem = Problem::new(place, format!("`{key}` means nothing {jitter}"));
            check.report(problem.help(format!("write `jitter = \"{needs}\"`, or leave `{key}` out")));
        }
    }
}

fn backoff(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Backoff> {
    let (raw, header) = (&section.raw, &section.header);
    let problems = &mut *check.problems;
    match raw.kind.need("kind", header, problems)?.value {
        Curve::None => Some(Backoff::None),
        Curve::Constant => Some(Backoff::Constant { delay: raw.delay.need("delay", header, problems)?.value.0 }),
        Curve::Linear => {
            let (base, step) = (raw.base.need("base", header, problems), raw.step.need("step", header, problems));
            Some(Backoff::Linear { base: base?.value.0, step: step?.value.0 })
        }
        Curve::Exponential => {
            let base = raw.base.need("base", header, problems)?;
            if base.value.0.is_zero() {
                let problem = Problem::new(&base.place, "`base` is zero, and zero times any factor stays zero");
                check.report(problem.help("write a duration above zero, such as \"500ms\", or `kind = \"none\"`"));
            }
            Some(Backoff::Exponential { base: base.value.0, factor: raw.factor.or(Factor(2.0)).0 })
        }
    }
}

fn check_cap(raw: &Policy, check: &mut Check<'_>) {
    let (Some(cap), Some(base)) = (raw.cap.given(), raw.base.given()) else { return };
    if cap.value.0 < base.value.0 {
        let problem = Problem::new(&cap.place, format!("`cap` ({}) is below `base` ({})", show(cap.value.0), show(base.value.0)))
            .label(&base.place, "the first wait")
            .label(&cap.place, "would already be cut to this")
            .help("raise `cap` or lower `base`");
        check.report(problem);
    }
}

fn jitter(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Jitter> {
    let (raw, header) = (&section.raw, &section.header);
    let chance = raw.jitter.or(Chance::None);
    check_something_to_randomise(raw, chance, check);
    match chance {
        Chance::None => Some(Jitter::None),
        Chance::Full => Some(Jitter::Full),
        Chance::Equal => Some(Jitter::Equal),
        Chance::Decorrelated => Some(Jitter::Decorrelated { bound: false, rising: false }),
        Chance::Additive => {
            Some(Jitter::Additive { spread: raw.jitter_spread.need("jitter_spread", header, check.problems)?.value.0 })
        }
        Chance::Proportional => {
            let share = raw.jitter_share.need("jitter_share", header, check.problems)?;
            if share.value.0 == 0.0 {
                let problem = Problem::new(&share.place, "`jitter_share` is zero, which randomises nothing");
                check.report(problem.help("write a share above 0, such as 0.2, or `jitter = \"none\"`"));
            }
            Some(Jitter::Proportional { share: share.value.0 })
        }
    }
}

/// Refuses jitter on a wait that is always zero, and decorrelated jitter that would grow from zero.
fn check_something_to_randomise(raw: &Policy, chance: Chance, check: &mut Check<'_>) {
    let (Some(kind), Some(jitter)) = (raw.kind.given(), raw.jitter.given()) else { return };
    if kind.value == Curve::None && !matches!(chance, Chance::None | Chance::Additive) {
        let problem = Problem::new(&jitter.place, "this jitter scales the wait, and with `kind = \"none\"` there is none")
            .label(&kind.place, "always zero")
            .label(&jitter.place, "a part of zero is zero")
            .help("write `jitter = \"additive\"` with a `jitter_spread`, or a `kind` that waits");
        check.report(problem);
    }
    let zero_base = raw.base.given().filter(|base| base.value.0 == Duration::ZERO && kind.value == Curve::Linear);
    if let Some(base) = zero_base.filter(|_| chance == Chance::Decorrelated) {
        let problem = Problem::new(&base.place, "decorrelated jitter grows from `base`, which is zero")
            .label(&jitter.place, "three times the last delay at most")
            .label(&base.place, "so it never leaves zero")
            .help("write a `base` above zero");
        check.report(problem);
    }
}
