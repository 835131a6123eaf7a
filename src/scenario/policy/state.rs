//! Budget, breaker and rate: what jobs share, and who shares it.

use std::time::Duration;

use super::super::amount::Amount;
use super::super::error::Problem;
use super::super::file::Check;
use super::super::table::{Field, Section};
use super::super::value::{Count, Flag, Length, Share};
use super::{BreakerKind, BudgetKind, Charge, Policy, RateKind, Scope, refuse_others};
use crate::policy::{self, Breaker, Budget, BudgetRule, Rate, RateRule, Trip};

pub(super) fn apply(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    budget(section, policy, check);
    breaker(section, policy, check);
    rate(section, policy, check);
}

fn scope(field: &Field<Scope>) -> policy::Scope {
    match field.or(Scope::Process) {
        Scope::Job => policy::Scope::Job,
        Scope::Worker => policy::Scope::Worker,
        Scope::Process => policy::Scope::Process,
        Scope::Shared => policy::Scope::Shared,
    }
}

const BUDGET: [&str; 14] = [
    "budget_max",
    "budget_cost",
    "budget_timeout_cost",
    "budget_throttled_cost",
    "budget_refill",
    "budget_refund",
    "budget_threshold",
    "budget_charge",
    "budget_share",
    "budget_floor",
    "budget_window",
    "budget_most",
    "budget_rate",
    "budget_burst",
];

fn budget(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let raw = &section.raw;
    if raw.budget.is_wrong() {
        return;
    }
    let Some(kind) = raw.budget.value() else {
        refuse_others(section, &BUDGET, &[], "without a `budget`", check);
        match &mut policy.budget {
            Some(budget) if super::is_written(&raw.budget_scope) => budget.scope = scope(&raw.budget_scope),
            _ => refuse_others(section, &["budget_scope"], &[], "without a `budget`", check),
        }
        return;
    };
    let taken: &[&str] = match kind {
        BudgetKind::None => &[],
        BudgetKind::Tokens => &BUDGET[..8],
        BudgetKind::Ratio => &["budget_share", "budget_floor", "budget_window"],
        BudgetKind::Concurrent => &["budget_most", "budget_share"],
        BudgetKind::Bucket => &["budget_rate", "budget_burst"],
    };
    refuse_others(section, &BUDGET, taken, &format!("with `budget = {:?}`", kind.word()), check);
    policy.budget = budget_rule(section, *kind, check).map(|rule| Budget { rule, scope: scope(&raw.budget_scope) });
}

fn budget_rule(section: &Section<Policy>, kind: BudgetKind, check: &mut Check<'_>) -> Option<BudgetRule> {
    let (raw, header) = (&section.raw, &section.header);
    Some(match kind {
        BudgetKind::None => return None,
        BudgetKind::Tokens => tokens(raw, check),
        BudgetKind::Ratio => BudgetRule::Ratio {
            share: raw.budget_share.need("budget_share", header, check.problems)?.value.0,
            floor: raw.budget_floor.value().map_or(0.0, |floor| floor.0),
            window: raw.budget_window.or(Length(Duration::from_secs(10))).0,
        },
        BudgetKind::Concurrent => {
            BudgetRule::Concurrent { most: raw.budget_most.or(Count(3)).0 as u32, share: raw.budget_share.or(Share(0.0)).0 }
        }
        BudgetKind::Bucket => BudgetRule::Bucket {
            rate: raw.budget_rate.need("budget_rate", header, check.problems)?.value.0,
            burst: raw.budget_burst.or(Count(100)).0 as u32,
        },
    })
}

fn tokens(raw: &Policy, check: &mut Check<'_>) -> BudgetRule {
    let cost = raw.budget_cost.or(Amount(5.0)).0;
    let max = raw.budget_max.or(Amount(500.0)).0;
    if let Some(at) = raw.budget_cost.given().filter(|_| cost > max) {
        let message = format!("`budget_cost` ({cost}) is above `budget_max` ({max}), so no retry is ever paid");
        check.report(Problem::new(&at.place, message).help("lower `budget_cost` or raise `budget_max`"));
    }
    BudgetRule::Tokens {
        max,
        cost,
        timeout_cost: raw.budget_timeout_cost.or(Amount(cost)).0,
        throttled_cost: raw.budget_throttled_cost.or(Amount(cost)).0,
        refill: raw.budget_refill.or(Amount(1.0)).0,
        refund: raw.budget_refund.or(Flag(true)).0,
        threshold: raw.budget_threshold.value().map_or(-1.0, |threshold| threshold.0),
        on_failure: raw.budget_charge.or(Charge::Retry) == Charge::Failure,
    }
}

const BREAKER: [&str; 8] = [
    "breaker_failures",
    "breaker_share",
    "breaker_window",
    "breaker_least",
    "breaker_open",
    "breaker_jitter",
    "breaker_probes",
    "breaker_on",
];

fn breaker(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let raw = &section.raw;
    if raw.breaker.is_wrong() {
        return;
    }
    let Some(kind) = raw.breaker.value() else {
        refuse_others(section, &BREAKER, &[], "without a `breaker`", check);
        match &mut policy.breaker {
            Some(breaker) if super::is_written(&raw.breaker_scope) => breaker.scope = scope(&raw.breaker_scope),
            _ => refuse_others(section, &["breaker_scope"], &[], "without a `breaker`", check),
        }
        return;
    };
    let taken = match kind {
        BreakerKind::None => vec![],
        BreakerKind::Consecutive => [&BREAKER[..1], &BREAKER[4..]].concat(),
        BreakerKind::Ratio => BREAKER[1..].to_vec(),
    };
    refuse_others(section, &BREAKER, &taken, &format!("with `breaker = {:?}`", kind.word()), check);
    let trip = match kind {
        BreakerKind::None => {
            policy.breaker = None;
            return;
        }
        BreakerKind::Consecutive => Trip::Consecutive { failures: raw.breaker_failures.or(Count(5)).0 as u32 },
        BreakerKind::Ratio => {
            if let Some(share) = raw.breaker_share.given().filter(|share| share.value.0 == 0.0) {
                let problem = Problem::new(&share.place, "`breaker_share` is zero, so the breaker opens without a failure");
                check.report(problem.help("write a share above 0, such as 0.5"));
            }
            Trip::Ratio {
                share: raw.breaker_share.or(Share(0.5)).0,
                window: raw.breaker_window.or(Length(Duration::from_secs(30))).0,
                least: raw.breaker_least.or(Count(20)).0 as u32,
            }
        }
    };
    policy.breaker = Some(Breaker {
        trip,
        open: raw.breaker_open.or(Length(Duration::from_secs(5))).0,
        jitter: raw.breaker_jitter.or(Share(0.0)).0,
        probes: raw.breaker_probes.or(Count(1)).0 as u32,
        on: raw.breaker_on.value().map(|on| on.0.clone()).unwrap_or_default(),
        scope: scope(&raw.breaker_scope),
    });
}

fn rate(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    const RATE: [&str; 2] = ["rate_limit", "rate_burst"];
    let raw = &section.raw;
    if raw.rate.is_wrong() {
        return;
    }
    let Some(kind) = raw.rate.value() else {
        refuse_others(section, &RATE, &[], "without a `rate`", check);
        match &mut policy.rate {
            Some(rate) if super::is_written(&raw.rate_scope) => rate.scope = scope(&raw.rate_scope),
            _ => refuse_others(section, &["rate_scope"], &[], "without a `rate`", check),
        }
        return;
    };
    let taken: &[&str] = if *kind == RateKind::Fixed { &RATE } else { &[] };
    refuse_others(section, &RATE, taken, &format!("with `rate = {:?}`", kind.word()), check);
    let rule = match kind {
        RateKind::None => None,
        RateKind::Adaptive => Some(RateRule::Adaptive { second: Duration::from_secs(1) }),
        RateKind::Fixed => raw
            .rate_limit
            .need("rate_limit", &section.header, check.problems)
            .map(|limit| RateRule::Fixed { rate: limit.value.0, burst: raw.rate_burst.or(Count(1)).0 as u32 }),
    };
    policy.rate = rule.map(|rule| Rate { rule, scope: scope(&raw.rate_scope) });
}
