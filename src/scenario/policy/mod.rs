//! `[policy.NAME]`: how a queue retries.
//!
//! A policy begins as a preset, or as nothing with a curve; then each part of the table that was given takes its place. The parts
//! are checked one by one, each in a file: what a key means depends on no other part.

mod choices;
mod curve;
mod jitter;
mod rest;
mod state;

use choices::{
    BreakerKind, BudgetKind, Chance, Charge, Clock, CountBy, Curve, First, GrainEnds, Heed, Order, RateKind, Rest, Scope,
};

use super::NamedPolicy;
use super::amount::{Amount, Delay, Multiple, Patterns, Scale, Statuses, Waits};
use super::error::Problem;
use super::file::Check;
use super::table::{At, Field, Named, Section, table};
use super::value::{Count, Factor, Flag, Length, NAME_HELP, Offset, Rate, Share, Text, is_name};
use crate::policy::{self, Kind, preset};

table! {
    /// How a queue retries.
    Policy in "[policy.NAME]" {
        /// What a real system does, by its name in `simq policies`; any other key overrides it.
        #[schemars(default)]
        preset: Text,
        /// Makes this policy's time run slower, or faster below 1; in place of the scenario's.
        #[schemars(default)]
        time_scale: Scale,
        /// The curve: no wait, the same wait, `base + step · (n − 1)`, `base · factor^(n − 1)`, `base · (n − offset)^power`, `base` times 1, 2, 3, 5 …, a list,
        /// a sum of `delay`, `step · (n − 1)` and `base · factor^(n − 1)`, or a formula, before retry n. Required without a `preset`.
        #[schemars(default)]
        kind: Curve,
        /// `constant`: the wait. `expression`: the formula, in seconds.
        #[schemars(default)]
        delay: Delay,
        /// The unit of the curve: with `linear` and `exponential` the wait before the first retry.
        #[schemars(default)]
        base: Offset,
        /// `linear`: what each further retry adds.
        #[schemars(default)]
        step: Length,
        /// `exponential`: growth from retry to retry.
        factor: Factor = 2.0,
        /// `polynomial`: the exponent.
        power: Factor = 4.0,
        /// `polynomial`: what is taken from n.
        offset: Count<0, 1> = 0,
        /// `list`: the waits.
        #[schemars(default)]
        delays: Waits,
        /// `list`: where there are more retries than waits, the last repeats, the first repeats at the beginning, or the retries stop.
        tail: Rest = "last",
        /// Added to the curve before cap and jitter.
        #[schemars(default)]
        plus: Offset,
        /// Taken from the curve before cap and jitter.
        #[schemars(default)]
        minus: Offset,
        /// Added to the delay after jitter, and so without any.
        #[schemars(default)]
        pad: Offset,
        /// The curve stands still from this retry on.
        #[schemars(default)]
        until: Count<1, 1000>,
        /// With more attempts than this, n is shrunk so that the last is this.
        #[schemars(default)]
        rescale: Count<1, 1000>,
        /// What a retry counts for: the job, or each kind of failure apart, each with the whole limit.
        count_by: CountBy = "job",
        /// The first retry: as the curve says, at once, or as the curve says without jitter.
        first: First = "scheduled",
        /// No delay is shorter, whatever jitter drew.
        #[schemars(default)]
        floor: Offset,
        /// The wait never exceeds this, and with `order` neither does the delay. No cap if not given.
        #[schemars(default)]
        cap: Length,
        /// The cap before jitter, after it, both, or the interval cut to floor and cap before the draw.
        order: Order = "cap-first",
        /// How the wait is randomised.
        jitter: Chance = "none",
        /// `proportional`, `upward` and `downward`: the relative width; 0.2 is 20 % to each side that there is.
        #[schemars(default)]
        jitter_share: Share,
        /// `additive`: the width.
        #[schemars(default)]
        jitter_spread: Length,
        /// `growing`: the width per retry, so that retry n has n of it.
        #[schemars(default)]
        jitter_growth: Length,
        /// `between`: the least factor on the wait.
        #[schemars(default)]
        jitter_low: Multiple,
        /// `between`: the greatest factor on the wait.
        #[schemars(default)]
        jitter_high: Multiple,
        /// `decorrelated`: the cap bounds the draw, instead of cutting what was drawn.
        jitter_bound: Flag = false,
        /// `decorrelated`: draws begin at the last delay, so that none is shorter.
        jitter_rising: Flag = false,
        /// The least factor on the cap, once the curve has reached it; with `at_cap_high`.
        #[schemars(default)]
        at_cap_low: Multiple,
        /// The greatest factor on the cap, once the curve has reached it; with `at_cap_low`.
        #[schemars(default)]
        at_cap_high: Multiple,
        /// Delays are whole numbers of this.
        #[schemars(default)]
        grain: Length,
        /// The upper end: rounded down and so left out, or drawn as often as any other.
        grain_ends: GrainEnds = "down",
        /// What the delay counts from.
        clock: Clock = "failure",
        /// A retry comes due when a promoter that looks every so often next looks.
        #[schemars(default)]
        quantum: Length,
        /// Retries allowed, in place of each job's own number.
        #[schemars(default)]
        max_retries: Count<0, 1000>,
        /// No retry once a job is so old.
        #[schemars(default)]
        max_elapsed: Length,
        /// `max_elapsed` counts the delay as well.
        elapsed_with_delay: Flag = false,
        /// The last retry is the one before the curve passes its cap.
        end_at_cap: Flag = false,
        /// Tell permanent failures from transient ones, and give up at once on the permanent.
        classify: Flag = true,
        /// Outcomes that are as good as done: statuses, `4xx`, `5xx`, `timeout`, `refused`, `reset`.
        #[schemars(default)]
        success_on: Patterns,
        /// Outcomes that are retried; with it, nothing else is that is in no list.
        #[schemars(default)]
        retry_on: Patterns,
        /// Outcomes that are retried as throttling.
        #[schemars(default)]
        throttled_on: Patterns,
        /// Outcomes that are given up.
        #[schemars(default)]
        fatal_on: Patterns,
        /// Outcomes that are retried without being counted; with `max_retries` or `preset`.
        #[schemars(default)]
        uncounted_on: Patterns,
        /// After a time-out, the delay of this policy or preset.
        #[schemars(default)]
        on_timeout: Text,
        /// After throttling, the delay of this policy or preset.
        #[schemars(default)]
        on_throttled: Text,
        /// After a 5xx, the delay of this policy or preset.
        #[schemars(default)]
        on_server: Text,
        /// After a refused or broken connection, the delay of this policy or preset.
        #[schemars(default)]
        on_refused: Text,
        /// What a server's Retry-After does: nothing, a lower bound of the delay, or the delay itself; within the delay and `hint_above` more; between `hint_low` and
        /// `hint_high`; the delay itself or, above `hint_longest`, the end; the delay itself and `hint_share` of it on top; the delay itself and the curve from its beginning.
        retry_after: Heed = "ignore",
        /// `retry_after = "within"`: how much above the delay.
        hint_above: Offset = "5s",
        /// `retry_after = "between"`: the least.
        hint_low: Offset = "0s",
        /// `retry_after = "between"`: the most.
        hint_high: Length = "6h",
        /// `give-up-above` and `spread`: the longest that is waited, or believed.
        hint_longest: Length = "5m",
        /// `give-up-above`: the hint is a lower bound of the delay.
        hint_at_least: Flag = false,
        /// `spread`: how far, relative to the hint.
        hint_share: Share = 0.5,
        /// Only these statuses' hints count; all if not given.
        #[schemars(default)]
        hint_on: Statuses,
        /// A hint makes every failure worth a retry.
        hint_on_any: Flag = false,
        /// What retries have to be paid from.
        budget: BudgetKind = "none",
        /// `tokens`: the balance at first and at most.
        budget_max: Amount = 500.0,
        /// `tokens`: what a retry costs.
        budget_cost: Amount = 5.0,
        /// `tokens`: what a retry after a time-out costs; as `budget_cost` if not given.
        #[schemars(default)]
        budget_timeout_cost: Amount,
        /// `tokens`: what a retry after throttling costs; as `budget_cost` if not given.
        #[schemars(default)]
        budget_throttled_cost: Amount,
        /// `tokens`: what a success brings in.
        budget_refill: Amount = 1.0,
        /// `tokens`: a success after retries brings in what the last of them cost.
        budget_refund: Flag = true,
        /// `tokens`: retries are refused unless more than this is left; none if not given.
        #[schemars(default)]
        budget_threshold: Amount,
        /// `tokens`: each retry pays, or each failure.
        budget_charge: Charge = "retry",
        /// `ratio`: retries per first attempt. `concurrent`: retries as a share of all calls under way.
        #[schemars(default)]
        budget_share: Share,
        /// `ratio`: retries allowed beside that, such as `10/s`; none if not given.
        #[schemars(default)]
        budget_floor: Rate,
        /// `ratio`: how long calls count.
        budget_window: Length = "10s",
        /// `concurrent`: retries under way that are allowed in any case.
        budget_most: Count<0, 1_000_000> = 3,
        /// `bucket`: retries per time, such as `10/s`.
        #[schemars(default)]
        budget_rate: Rate,
        /// `bucket`: retries at once after a quiet time.
        budget_burst: Count<1, 1_000_000> = 100,
        /// Who shares the budget.
        budget_scope: Scope = "process",
        /// What opens the circuit breaker.
        breaker: BreakerKind = "none",
        /// `consecutive`: failures in a row.
        breaker_failures: Count<1, 1_000_000> = 5,
        /// `ratio`: the share of calls.
        breaker_share: Share = 0.5,
        /// `ratio`: how long calls count.
        breaker_window: Length = "30s",
        /// `ratio`: with fewer calls in the window nothing opens.
        breaker_least: Count<1, 1_000_000> = 20,
        /// How long it stays open.
        breaker_open: Length = "5s",
        /// Up to this share longer, drawn each time.
        breaker_jitter: Share = 0.0,
        /// Calls that try the service then; all must succeed.
        breaker_probes: Count<1, 1000> = 1,
        /// Failures that count; all that are retried if not given.
        #[schemars(default)]
        breaker_on: Patterns,
        /// Who shares the breaker.
        breaker_scope: Scope = "process",
        /// How fast calls may be made.
        rate: RateKind = "none",
        /// `fixed`: calls per time, such as `50/s`.
        #[schemars(default)]
        rate_limit: Rate,
        /// `fixed`: calls at once after a quiet time.
        rate_burst: Count<1, 1_000_000> = 1,
        /// Who shares the rate.
        rate_scope: Scope = "process",
    }
}

/// The policies in the order of the file, in the scenario's time where they have none of their own.
pub(super) fn check(policies: &At<Named<Policy>>, scale: f64, check: &mut Check<'_>) -> Vec<NamedPolicy> {
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
    let known = checked.clone();
    for ((_, section), named) in policies.value.0.iter().zip(&mut checked) {
        named.policy.by_failure.splice(0..0, by_failure(section, &known, check));
        let scale = section.raw.time_scale.value().map_or(scale, |own| own.0);
        if scale != 1.0 {
            named.policy = named.policy.scaled(scale);
        }
    }
    checked
}

fn check_one(section: &Section<Policy>, check: &mut Check<'_>) -> policy::Policy {
    let mut policy = begin(section, check);
    curve::apply(section, &mut policy, check);
    jitter::apply(section, &mut policy, check);
    rest::apply(section, &mut policy, check);
    state::apply(section, &mut policy, check);
    policy
}

/// The preset, or nothing.
fn begin(section: &Section<Policy>, check: &mut Check<'_>) -> policy::Policy {
    let blank = policy::Policy { classify: true, ..policy::Policy::default() };
    let Some(name) = section.raw.preset.given() else { return blank };
    match preset::find(&name.value.0) {
        Some(preset) => preset.policy(),
        None => {
            check.report(
                Problem::new(&name.place, format!("there is no preset {:?}", name.value.0)).help(unknown_preset(&name.value.0)),
            );
            blank
        }
    }
}

fn unknown_preset(name: &str) -> String {
    match preset::meant(name) {
        Some(near) => format!("did you mean \"{near}\"? `simq policies` lists all"),
        None => "`simq policies` lists all".to_owned(),
    }
}

/// Another policy's delays for kinds of failure.
fn by_failure(section: &Section<Policy>, known: &[NamedPolicy], check: &mut Check<'_>) -> Vec<(Kind, policy::Policy)> {
    let raw = &section.raw;
    let keys = [
        (&raw.on_timeout, "on_timeout", Kind::Timeout),
        (&raw.on_throttled, "on_throttled", Kind::Throttled),
        (&raw.on_server, "on_server", Kind::Server),
        (&raw.on_refused, "on_refused", Kind::Refused),
    ];
    let mut chosen = Vec::new();
    for (field, key, kind) in keys {
        let Some(at) = field.given() else { continue };
        let own = known.iter().find(|named| named.name == at.value.0).map(|named| named.policy.clone());
        match own.or_else(|| preset::find(&at.value.0).map(preset::Preset::policy)) {
            Some(policy) => chosen.push((kind, policy)),
            None => {
                let message = format!("`{key}` is {:?}, and there is no such policy or preset", at.value.0);
                let names: Vec<&str> = known.iter().map(|named| named.name.as_str()).collect();
                let help = crate::nearest::nearest(&at.value.0, &names)
                    .map_or_else(|| unknown_preset(&at.value.0), |near| format!("did you mean \"{near}\"?"));
                check.report(Problem::new(&at.place, message).help(help));
            }
        }
    }
    chosen
}

/// Reports keys of `all` that stand in the table although `taken` are the only ones that mean anything there.
fn refuse_others(section: &Section<Policy>, all: &[&str], taken: &[&str], choice: &str, check: &mut Check<'_>) {
    for key in all.iter().filter(|key| !taken.contains(key)) {
        if let Some(place) = section.header.key(key) {
            let help = match taken {
                [] => format!("leave `{key}` out"),
                taken => format!("it takes {}", super::table::listed(taken)),
            };
            check.report(Problem::new(place, format!("`{key}` means nothing {choice}")).help(help));
        }
    }
}

/// Whether the field was written, right or wrong.
fn is_written<T>(field: &Field<T>) -> bool {
    !matches!(field, Field::Absent)
}
