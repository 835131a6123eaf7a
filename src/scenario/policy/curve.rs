//! The curve's keys: of a `kind`, or over a preset's.

use std::time::Duration;

use super::super::amount::{Delay, within};
use super::super::error::Problem;
use super::super::file::Check;
use super::super::table::Section;
use super::super::value::{Count, Factor};
use super::{CountBy, Curve, First, Policy, Rest, refuse_others};
use crate::policy::{self, Backoff, Expression, ExpressionSettings, Tail};
use crate::time::show;

/// The keys of curves.
const ALL: [&str; 8] = ["delay", "base", "step", "factor", "power", "offset", "delays", "tail"];

pub(super) fn apply(section: &Section<Policy>, policy: &mut policy::Policy, check: &mut Check<'_>) {
    let raw = &section.raw;
    counting(raw, policy);
    cap(raw, policy, check);
    match (raw.preset.given(), raw.kind.given()) {
        (Some(preset), Some(kind)) => {
            let problem = Problem::new(&kind.place, "a preset has its curve, and `kind` would put another in its place")
                .label(&preset.place, "one curve")
                .label(&kind.place, "and another")
                .help("leave one of the two out");
            check.report(problem);
        }
        (Some(_), None) => over_preset(section, &mut policy.backoff, check),
        (None, _) => policy.backoff = of_kind(section, check).unwrap_or(Backoff::None),
    }
}

fn counting(raw: &Policy, policy: &mut policy::Policy) {
    if let Some(plus) = raw.plus.value() {
        policy.plus = plus.0;
    }
    if let Some(minus) = raw.minus.value() {
        policy.minus = minus.0;
    }
    if let Some(pad) = raw.pad.value() {
        policy.pad = pad.0;
    }
    if let Some(until) = raw.until.value() {
        policy.counter.until = Some(until.0 as u32);
    }
    if let Some(to) = raw.rescale.value() {
        policy.counter.rescale = Some(to.0 as u32);
    }
    if let Some(by) = raw.count_by.value() {
        policy.counter.by_failure = *by == CountBy::Failure;
    }
    if let Some(first) = raw.first.value() {
        policy.first = match first {
            First::Scheduled => policy::First::Scheduled,
            First::Free => policy::First::Free,
            First::Exact => policy::First::Exact,
        };
    }
}

fn cap(raw: &Policy, policy: &mut policy::Policy, check: &mut Check<'_>) {
    if let Some(floor) = raw.floor.value() {
        policy.floor = Some(floor.0);
    }
    if let Some(cap) = raw.cap.value() {
        policy.cap = Some(cap.0);
    }
    if let Some(order) = raw.order.value() {
        policy.order = match order {
            super::Order::CapFirst => policy::Order::CapFirst,
            super::Order::CapLast => policy::Order::CapLast,
            super::Order::CapBoth => policy::Order::CapBoth,
            super::Order::Clip => policy::Order::Clip,
        };
    }
    below(raw.cap.given().map(|cap| (cap.value.0, &cap.place)), raw.base.given().map(|base| (base.value.0, &base.place)), check);
    if let (Some(cap), Some(floor)) = (raw.cap.given(), raw.floor.given())
        && cap.value.0 < floor.value.0
    {
        let message = format!("`cap` ({}) is below `floor` ({})", show(cap.value.0), show(floor.value.0));
        let problem = Problem::new(&cap.place, message).label(&floor.place, "no shorter").label(&cap.place, "no longer");
        check.report(problem.help("raise `cap` or lower `floor`"));
    }
}

fn below(
    cap: Option<(Duration, &super::super::table::Place)>,
    base: Option<(Duration, &super::super::table::Place)>,
    check: &mut Check<'_>,
) {
    let (Some((cap, cap_place)), Some((base, base_place))) = (cap, base) else { return };
    if cap < base {
        let problem = Problem::new(cap_place, format!("`cap` ({}) is below `base` ({})", show(cap), show(base)))
            .label(base_place, "the first wait")
            .label(cap_place, "would already be cut to this")
            .help("raise `cap` or lower `base`");
        check.report(problem);
    }
}

/// What each kind of curve takes.
fn taken(kind: Curve) -> (&'static str, &'static [&'static str]) {
    match kind {
        Curve::None => ("with `kind = \"none\"`", &[]),
        Curve::Constant => ("with `kind = \"constant\"`", &["delay"]),
        Curve::Linear => ("with `kind = \"linear\"`", &["base", "step"]),
        Curve::Exponential => ("with `kind = \"exponential\"`", &["base", "factor"]),
        Curve::Polynomial => ("with `kind = \"polynomial\"`", &["base", "power", "offset"]),
        Curve::Fibonacci => ("with `kind = \"fibonacci\"`", &["base"]),
        Curve::List => ("with `kind = \"list\"`", &["delays", "tail"]),
        Curve::Sum => ("with `kind = \"sum\"`", &["delay", "step", "base", "factor"]),
        Curve::Expression => ("with `kind = \"expression\"`", &["delay", "base"]),
    }
}

fn of_kind(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Backoff> {
    let (raw, header) = (&section.raw, &section.header);
    let is_formula = matches!(raw.delay.value(), Some(Delay::Formula(..)));
    let kind = match raw.kind.value() {
        Some(kind) => *kind,
        None if is_formula && !super::is_written(&raw.kind) => Curve::Expression,
        None => raw.kind.need("kind", header, check.problems)?.value,
    };
    let (choice, own) = taken(kind);
    refuse_others(section, &ALL, own, choice, check);
    if matches!(kind, Curve::None | Curve::Constant) {
        refuse_others(section, &["cap"], &[], choice, check);
    }
    let problems = &mut *check.problems;
    match kind {
        Curve::None => Some(Backoff::None),
        Curve::Constant => Some(Backoff::Constant { delay: wait(section, check)? }),
        Curve::Linear => {
            let (base, step) = (raw.base.need("base", header, problems), raw.step.need("step", header, problems));
            Some(Backoff::Linear { base: base?.value.0, step: step?.value.0 })
        }
        Curve::Exponential => Some(Backoff::Exponential { base: base(section, check)?, factor: raw.factor.or(Factor(2.0)).0 }),
        Curve::Polynomial => Some(Backoff::Polynomial {
            base: base(section, check)?,
            offset: raw.offset.or(Count(0)).0 as u32,
            power: raw.power.or(Factor(4.0)).0,
        }),
        Curve::Fibonacci => Some(Backoff::Fibonacci { base: base(section, check)? }),
        Curve::List => {
            let delays = raw.delays.need("delays", header, problems)?.value.0.clone();
            Some(Backoff::List { delays, tail: tail(raw.tail.or(Rest::Last)) })
        }
        Curve::Sum => sum(section, check),
        Curve::Expression => formula(section, check),
    }
}

fn base(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Duration> {
    let base = section.raw.base.need("base", &section.header, check.problems)?;
    if base.value.0.is_zero() {
        let problem = Problem::new(&base.place, "`base` is zero, and zero times any factor stays zero");
        check.report(problem.help("write a duration above zero, such as \"500ms\", or `kind = \"none\"`"));
    }
    Some(base.value.0)
}

fn tail(rest: Rest) -> Tail {
    match rest {
        Rest::Last => Tail::Last,
        Rest::First => Tail::First,
        Rest::Stop => Tail::Stop,
    }
}

/// `delay` as a wait.
fn wait(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Duration> {
    let delay = section.raw.delay.need("delay", &section.header, check.problems)?;
    match &delay.value {
        Delay::Wait(wait) => Some(*wait),
        Delay::Formula(_, (message, help)) => {
            check.report(Problem::new(&delay.place, message.clone()).help(help.clone()));
            None
        }
    }
}

fn sum(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Backoff> {
    let raw = &section.raw;
    let mut parts = Vec::new();
    if super::is_written(&raw.delay) {
        parts.push(Backoff::Constant { delay: wait(section, check)? });
    }
    if let Some(step) = raw.step.value() {
        parts.push(Backoff::Linear { base: Duration::ZERO, step: step.0 });
    }
    if super::is_written(&raw.base) {
        parts.push(Backoff::Exponential { base: base(section, check)?, factor: raw.factor.or(Factor(2.0)).0 });
    }
    if parts.is_empty() {
        let problem = Problem::new(&section.header.place, format!("the sum of {} has no part", section.header.title));
        check.report(problem.help("write `delay`, `step`, `base` with `factor`, or several of them"));
    }
    Some(Backoff::Sum { parts })
}

fn formula(section: &Section<Policy>, check: &mut Check<'_>) -> Option<Backoff> {
    let raw = &section.raw;
    let delay = raw.delay.need("delay", &section.header, check.problems)?;
    let text = match &delay.value {
        Delay::Formula(text, _) => text.clone(),
        Delay::Wait(wait) => format!("{}", wait.as_secs_f64()),
    };
    let settings = ExpressionSettings { base: raw.base.value().map(|base| base.0), cap: raw.cap.value().map(|cap| cap.0) };
    match Expression::parse(&text, settings) {
        Ok(delay) => Some(Backoff::Expression { delay: Box::new(delay) }),
        Err(fault) => {
            check.report(Problem::new(&within(&delay.place, &text, &fault.at), fault.message).help(fault.help));
            None
        }
    }
}

/// Puts the curve's keys in place of a preset's, where its curve has them.
fn over_preset(section: &Section<Policy>, backoff: &mut Backoff, check: &mut Check<'_>) {
    let raw = &section.raw;
    let own: &[&str] = match backoff {
        Backoff::None | Backoff::Expression { .. } | Backoff::Sum { .. } => &[],
        Backoff::Constant { .. } => &["delay"],
        Backoff::Linear { .. } => &["base", "step"],
        Backoff::Exponential { .. } | Backoff::Stepped { .. } => &["base", "factor"],
        Backoff::Polynomial { .. } => &["base", "power", "offset"],
        Backoff::Fibonacci { .. } => &["base"],
        Backoff::List { .. } => &["delays", "tail"],
    };
    let name = raw.preset.value().map_or("", |preset| preset.0.as_str());
    refuse_others(section, &ALL, own, &format!("with `preset = {name:?}`"), check);
    if own.contains(&"base") && !matches!(backoff, Backoff::Linear { .. }) && super::is_written(&raw.base) {
        base(section, check);
    }
    match backoff {
        Backoff::Constant { delay } if super::is_written(&raw.delay) => *delay = wait(section, check).unwrap_or(*delay),
        Backoff::Linear { base, step } => {
            *base = raw.base.value().map_or(*base, |given| given.0);
            *step = raw.step.value().map_or(*step, |given| given.0);
        }
        Backoff::Exponential { base, factor } | Backoff::Stepped { base, factor, .. } => {
            *base = raw.base.value().map_or(*base, |given| given.0);
            *factor = raw.factor.value().map_or(*factor, |given| given.0);
        }
        Backoff::Polynomial { base, offset, power } => {
            *base = raw.base.value().map_or(*base, |given| given.0);
            *offset = raw.offset.value().map_or(*offset, |given| given.0 as u32);
            *power = raw.power.value().map_or(*power, |given| given.0);
        }
        Backoff::Fibonacci { base } => *base = raw.base.value().map_or(*base, |given| given.0),
        Backoff::List { delays, tail: rest } => {
            if let Some(given) = raw.delays.value() {
                delays.clone_from(&given.0);
            }
            *rest = raw.tail.value().map_or(*rest, |given| tail(*given));
        }
        _ => {}
    }
}
