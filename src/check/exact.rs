//! Virtual time against a baseline: every figure of every repetition must be the same, since nothing in it is left to chance.
//!
//! A change for the better fails as well. It may be what was meant, and then the baseline is to be written anew.

use std::collections::BTreeSet;

use super::runs::{PolicyRuns, Runs, comparable, spread};
use super::show::{factor, show};
use super::stats::{median, ratio};
use super::{Finding, Tier, Verdict};
use crate::metrics::{Better, METRICS, Metric, Unit};

/// Compares all figures: a finding for each that differs or is missing, and one for each policy that is the same throughout.
pub fn exact(new: &Runs, old: &Runs) -> Vec<Finding> {
    let refused = comparable(new, old);
    if !refused.is_empty() {
        return refused;
    }
    let names: BTreeSet<&str> = new.policies.iter().chain(&old.policies).map(|runs| runs.name.as_str()).collect();
    let mut found = Vec::new();
    for name in names {
        match (new.policy(name), old.policy(name)) {
            (Some(new), Some(old)) => found.extend(policy(new, old)),
            (new, _) => found.push(lonely(name, new.is_some())),
        }
    }
    found
}

/// A policy that only one side has.
pub(super) fn lonely(name: &str, in_new: bool) -> Finding {
    let sentence = match in_new {
        true => "the baseline has no such policy",
        false => "the baseline has this policy, and it was not run",
    };
    let found = Finding::about(Tier::Exact, "the policy", Verdict::Missing, sentence.to_owned());
    Finding { policy: Some(name.to_owned()), ..found }
}

fn policy(new: &PolicyRuns, old: &PolicyRuns) -> Vec<Finding> {
    let about = |metric: &str, verdict, sentence| Finding {
        policy: Some(new.name.clone()),
        ..Finding::about(Tier::Exact, metric, verdict, sentence)
    };
    if new.seeds != old.seeds {
        let sentence =
            format!("the baseline has {} repetitions and {} were run, or their seeds differ", old.seeds.len(), new.seeds.len());
        return vec![about("the repetitions", Verdict::Missing, sentence)];
    }
    let names: BTreeSet<&String> = new.figures.keys().chain(old.figures.keys()).collect();
    let mut found = Vec::new();
    for name in &names {
        let sentence = match (new.figures.get(*name), old.figures.get(*name)) {
            (Some(ours), Some(theirs)) if ours == theirs => continue,
            (Some(_), Some(_)) => {
                found.extend(differing(name, new, old));
                continue;
            }
            (Some(_), None) => "the baseline lacks this figure: write it anew with --update",
            _ => "the baseline has this figure, and simq no longer does: write it anew with --update",
        };
        found.push(about(name, Verdict::Missing, sentence.to_owned()));
    }
    // The figures that a person reads first come first.
    found.sort_by_key(|finding| METRICS.iter().position(|metric| metric.name == finding.metric));
    if found.is_empty() {
        let sentence = format!("{} figures of {} repetitions, all equal", names.len(), new.seeds.len());
        found.push(about("all figures", Verdict::Same, sentence));
    }
    found
}

fn differing(name: &str, new: &PolicyRuns, old: &PolicyRuns) -> Option<Finding> {
    let metric = Metric::named(name);
    let unit = metric.map_or(Unit::Ratio, |metric| metric.unit);
    let (ours, theirs) = (new.values(name)?, old.values(name)?);
    let (now, was) = (median(&ours), median(&theirs));
    let differ: Vec<(f64, f64)> = ours.iter().copied().zip(theirs.iter().copied()).filter(|(a, b)| a != b).collect();
    let rises = differ.iter().filter(|(a, b)| a > b).count();
    let verdict = match (metric.map(|metric| metric.better), rises == differ.len(), rises == 0) {
        (Some(Better::Lower), true, _) | (Some(Better::Higher), _, true) => Verdict::Worse,
        (Some(Better::Lower), _, true) | (Some(Better::Higher), true, _) => Verdict::Better,
        _ => Verdict::Changed,
    };
    let (first_now, first_was) = differ.first().copied()?;
    let sentence = match now == was {
        true => {
            format!(
                "{} → {} in the first of {} repetitions that differ",
                show(unit, first_was),
                show(unit, first_now),
                differ.len()
            )
        }
        false => format!(
            "{} → {} ({}) in the median; {} of {} repetitions differ",
            show(unit, was),
            show(unit, now),
            factor(ratio(now, was)),
            differ.len(),
            ours.len()
        ),
    };
    Some(Finding {
        policy: Some(new.name.clone()),
        unit,
        fails: true,
        new: spread(&ours),
        old: Some(was).filter(|was| was.is_finite()),
        ..Finding::about(Tier::Exact, name, verdict, sentence)
    })
}
