//! `[[assert]]` lines held against the runs: values, and ratios between policies or between the engine and a raw limit.
//!
//! Ratios are of the same repetition, which every policy meets with the same luck and which are run in turns, so that they hold on any machine.

use super::runs::{PolicyRuns, Runs, spread};
use super::show::show;
use super::stats::{median, ratio};
use super::{Finding, Tier, Verdict};
use crate::metrics::{Metric, Unit};
use crate::scenario::{Assertion, Bound, Over, Relation};

/// Judges every assertion: one finding each, or one for each policy where it names none.
pub fn assertions(assertions: &[Assertion], runs: &Runs) -> Vec<Finding> {
    assertions.iter().flat_map(|assertion| judge(assertion, runs)).collect()
}

fn judge(assertion: &Assertion, runs: &Runs) -> Vec<Finding> {
    let Some(metric) = Metric::named(&assertion.metric) else {
        return vec![engine(assertion, runs)];
    };
    let other = match &assertion.bound {
        Bound::Ratio { of, .. } => Some(of),
        Bound::Value(_) => None,
    };
    let meant = |policy: &&PolicyRuns| match &assertion.policy {
        Some(name) => policy.name == *name,
        None => Some(&policy.name) != other,
    };
    let found: Vec<Finding> =
        runs.policies.iter().filter(meant).map(|policy| of_policy(assertion, metric, policy, runs)).collect();
    if found.is_empty() {
        let sentence = "the policy was not run".to_owned();
        return vec![finding(assertion, assertion.policy.clone(), metric.unit, Verdict::Missing, sentence, &[])];
    }
    found
}

fn of_policy(assertion: &Assertion, metric: &Metric, policy: &PolicyRuns, runs: &Runs) -> Finding {
    let unit = metric.unit;
    let name = Some(policy.name.clone());
    let missing = |what: String| finding(assertion, name.clone(), unit, Verdict::Missing, what, &[]);
    // A time that never came is beyond every bound; anything else that is not there can't be judged.
    let known = |policy: &PolicyRuns| {
        let values = policy.values(metric.name).filter(|values| !values.is_empty());
        let never = unit == Unit::Seconds;
        values.filter(|values| never || values.iter().all(|value| value.is_finite()))
    };
    let lacks =
        |policy: &str| format!("there is no `{}` of `{policy}` in every repetition, so nothing can be said of it", metric.name);
    let Some(values) = known(policy) else {
        return missing(lacks(&policy.name));
    };
    match &assertion.bound {
        Bound::Value(bound) => verdict(assertion, name, unit, &values, *bound, &bounded(assertion, &show(unit, *bound))),
        Bound::Ratio { ratio: bound, of } => {
            let Some(others) = runs.policy(of) else {
                return missing(format!("`{of}`, which it is compared with, was not run"));
            };
            let Some(theirs) = known(others).filter(|_| others.seeds == policy.seeds) else {
                return missing(lacks(of));
            };
            let ratios: Vec<f64> = values.iter().zip(&theirs).map(|(own, other)| ratio(*own, *other)).collect();
            let said = format!("{} times that of `{of}` ({})", show(Unit::Ratio, *bound), show(unit, median(&theirs)));
            let mut found = verdict(assertion, name, Unit::Ratio, &ratios, *bound, &bounded(assertion, &said));
            found.sentence += &format!("; it is {}", show(unit, median(&values)));
            found
        }
    }
}

fn engine(assertion: &Assertion, runs: &Runs) -> Finding {
    let values = runs.engine.get(&assertion.metric).filter(|values| !values.is_empty());
    match (&assertion.bound, values) {
        (Bound::Value(bound), Some(values)) => {
            // The probe's rounds are no repetitions: one that was disturbed says nothing.
            let said = bounded(assertion, &show(Unit::Ratio, *bound));
            verdict(assertion, None, Unit::Ratio, &[median(values)], *bound, &said)
        }
        _ => {
            let sentence = "the engine was not measured".to_owned();
            finding(assertion, None, Unit::Ratio, Verdict::Missing, sentence, &[])
        }
    }
}

fn bounded(assertion: &Assertion, bound: &str) -> String {
    let side = if assertion.relation == Relation::AtMost { "at most" } else { "at least" };
    format!("{side} {bound}")
}

fn verdict(assertion: &Assertion, policy: Option<String>, unit: Unit, values: &[f64], bound: f64, said: &str) -> Finding {
    let holds = |value: f64| match assertion.relation {
        Relation::AtMost => value <= bound,
        Relation::AtLeast => value >= bound && value.is_finite(),
    };
    let judged = match assertion.over {
        Over::Median => vec![median(values)],
        Over::Every => values.to_vec(),
    };
    let broken: Vec<f64> = judged.iter().copied().filter(|value| !holds(*value)).collect();
    let worst = broken.iter().copied().reduce(if assertion.relation == Relation::AtMost { f64::max } else { f64::min });
    let (verdict, sentence) = match worst {
        None if judged.len() == 1 => (Verdict::Held, format!("{}, {said}", show(unit, judged[0]))),
        None => (Verdict::Held, format!("{} in the median, {said} in every repetition", show(unit, median(values)))),
        Some(worst) if judged.len() == 1 => (Verdict::Broken, format!("{}, and it was to be {said}", show(unit, worst))),
        Some(worst) => {
            let (broken, all) = (broken.len(), judged.len());
            let places =
                if broken == all { format!("in all {all} repetitions") } else { format!("in {broken} of {all} repetitions") };
            (Verdict::Broken, format!("up to {} {places}, and it was to be {said}", show(unit, worst)))
        }
    };
    let sentence = if assertion.relation == Relation::AtLeast { sentence.replace("up to ", "down to ") } else { sentence };
    Finding { old: Some(bound), ..finding(assertion, policy, unit, verdict, sentence, values) }
}

fn finding(
    assertion: &Assertion,
    policy: Option<String>,
    unit: Unit,
    verdict: Verdict,
    sentence: String,
    values: &[f64],
) -> Finding {
    Finding {
        policy,
        unit,
        line: Some(assertion.line),
        new: spread(values),
        ..Finding::about(Tier::Assertion, &assertion.metric, verdict, sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Time;

    fn runs(policies: &[(&str, &[Option<f64>])]) -> Runs {
        let policies = policies.iter().map(|(name, values)| PolicyRuns {
            name: (*name).to_owned(),
            seeds: (0..values.len() as u64).collect(),
            figures: [("recovery_peak", *values), ("makespan_s", *values)].map(|(name, v)| (name.to_owned(), v.to_vec())).into(),
        });
        Runs {
            scenario: "x".to_owned(),
            fingerprint: String::new(),
            time: Time::Virtual,
            simq: String::new(),
            machine: Default::default(),
            policies: policies.collect(),
            engine: [("engine_claim_over_raw".to_owned(), vec![1.0, 9.0, 1.2])].into(),
            unfit: vec![],
        }
    }

    fn assertion(metric: &str, policy: Option<&str>, relation: Relation, bound: Bound, over: Over) -> Assertion {
        Assertion { metric: metric.to_owned(), policy: policy.map(str::to_owned), relation, bound, over, line: 9 }
    }

    fn verdicts(assertion: Assertion, runs: &Runs) -> Vec<Verdict> {
        assertions(&[assertion], runs).into_iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn every_repetition_must_hold_unless_the_median_is_asked_for() {
        let runs = runs(&[("a", &[Some(3.0), Some(5.0), Some(4.0)])]);
        let at_most = |over, bound| assertion("recovery_peak", Some("a"), Relation::AtMost, Bound::Value(bound), over);
        assert_eq!(verdicts(at_most(Over::Every, 4.0), &runs), [Verdict::Broken]);
        assert_eq!(verdicts(at_most(Over::Median, 4.0), &runs), [Verdict::Held]);
        let found = &assertions(&[at_most(Over::Every, 4.0)], &runs)[0];
        assert_eq!(found.sentence, "up to 5 in 1 of 3 repetitions, and it was to be at most 4");
        assert_eq!((found.line, found.fails), (Some(9), true));
    }

    #[test]
    fn a_ratio_is_of_the_same_repetition_and_spares_the_other_policy() {
        let runs = runs(&[("none", &[Some(10.0), Some(100.0)]), ("jitter", &[Some(3.0), Some(40.0)])]);
        let bound = |ratio| Bound::Ratio { ratio, of: "none".to_owned() };
        let at_most = |ratio| assertion("recovery_peak", None, Relation::AtMost, bound(ratio), Over::Every);
        assert_eq!(verdicts(at_most(0.4), &runs), [Verdict::Held]);
        assert_eq!(verdicts(at_most(0.35), &runs), [Verdict::Broken]);
    }

    #[test]
    fn what_never_came_is_beyond_every_bound_and_what_is_not_there_is_missing() {
        let runs = runs(&[("a", &[Some(3.0), None])]);
        for relation in [Relation::AtMost, Relation::AtLeast] {
            let assert = |metric| assertion(metric, Some("a"), relation, Bound::Value(1e9), Over::Every);
            assert_eq!(verdicts(assert("makespan_s"), &runs), [Verdict::Broken]);
            assert_eq!(verdicts(assert("recovery_peak"), &runs), [Verdict::Missing]);
        }
        let of_nobody = assertion("recovery_peak", Some("b"), Relation::AtMost, Bound::Value(1.0), Over::Every);
        assert_eq!(verdicts(of_nobody, &runs), [Verdict::Missing]);
    }

    #[test]
    fn the_engine_is_judged_by_the_median_of_its_rounds() {
        let mut runs = runs(&[("a", &[Some(3.0)])]);
        let at_most = |bound| assertion("engine_claim_over_raw", None, Relation::AtMost, Bound::Value(bound), Over::Every);
        assert_eq!(verdicts(at_most(1.2), &runs), [Verdict::Held]);
        assert_eq!(verdicts(at_most(1.1), &runs), [Verdict::Broken]);
        runs.engine.clear();
        assert_eq!(verdicts(at_most(9.0), &runs), [Verdict::Missing]);
    }
}
