//! Real figures against a baseline: what changed, in spite of the noise.
//!
//! A change is called *worse* or *better* only if three things agree: the ratio of the medians is beyond the tolerance, its confidence interval
//! lies on one side of 1, and the Mann-Whitney test, corrected for all comparisons of this gate (Holm), calls it significant. It is called *the same* only
//! if the interval lies within the tolerance. What is neither is inconclusive, with the number of repetitions that are likely to settle it.
//!
//! So among all comparisons of a gate the chance of a false alarm is at most [`Rule::alpha`], and with a tolerance above the noise far less. That holds for
//! independent repetitions. Two sessions on one machine differ by more than repetitions within one, which the tolerance is for.

use super::runs::{Runs, comparable, spread};
use super::show::{factor, show};
use super::stats::{bootstrap, holm, mann_whitney, median, ratio, smallest_p};
use super::{Finding, Tier, Verdict, Watched};
use crate::metrics::{Better, Unit};
use crate::rng::Seed;

/// How a verdict is come by.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The chance of any false alarm among all comparisons, at most.
    pub alpha: f64,
    /// The level of the confidence intervals.
    pub level: f64,
    /// Fewer repetitions than this are not compared.
    pub least: usize,
}

impl Default for Rule {
    fn default() -> Rule {
        Rule { alpha: 0.01, level: 0.95, least: 5 }
    }
}

/// More repetitions than this are not asked for: the noise is simply too great.
const MOST: usize = 200;

/// Two samples of one figure, held against each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// What it comes to.
    pub verdict: Verdict,
    /// The ratio of the medians, new to old.
    pub ratio: f64,
    /// Its confidence interval.
    pub interval: (f64, f64),
    /// The p-value, corrected.
    pub p: f64,
}

/// How much a ratio of the engine to its raw limit may differ, as a share: more than two probes of the same code on a busy machine do.
const ENGINE: f64 = 0.2;

/// Compares the engine's ratios, where both sides have them.
pub fn engine(new: &Runs, old: &Runs, rule: Rule) -> Vec<Finding> {
    let both = |(name, new)| Some((name, new, old.engine.get(name)?));
    let pairs: Vec<(&String, &Vec<f64>, &Vec<f64>)> = new.engine.iter().filter_map(both).collect();
    let p = holm(&pairs.iter().map(|(_, new, old)| mann_whitney(new, old)).collect::<Vec<f64>>());
    let found = pairs.iter().zip(p).map(|((name, new, old), p)| {
        let change = change(new, old, (p, pairs.len()), (Better::Lower, ENGINE), rule);
        let said = sentence(&change, Unit::Ratio, (median(old), median(new)), ENGINE);
        let finding = Finding::about(Tier::Baseline, name, change.verdict, said);
        Finding { new: spread(new), old: Some(median(old)), ..finding }
    });
    found.collect()
}

/// Compares the watched figures of all policies.
pub fn noisy(new: &Runs, old: &Runs, watched: &[Watched], rule: Rule) -> Vec<Finding> {
    let mut found = comparable(new, old);
    if !found.is_empty() {
        return found;
    }
    let mut pairs: Vec<(String, Watched, Vec<f64>, Vec<f64>)> = Vec::new();
    for theirs in old.policies.iter().filter(|runs| new.policy(&runs.name).is_none()) {
        found.push(Finding { tier: Tier::Baseline, ..super::exact::lonely(&theirs.name, false) });
    }
    for ours in &new.policies {
        let Some(theirs) = old.policy(&ours.name) else {
            found.push(Finding { tier: Tier::Baseline, ..super::exact::lonely(&ours.name, true) });
            continue;
        };
        for one in watched {
            match (ours.values(one.metric.name), theirs.values(one.metric.name)) {
                (Some(new), Some(old)) => pairs.push((ours.name.clone(), *one, new, old)),
                _ => {
                    let sentence = "the baseline lacks this figure: write it anew with --update".to_owned();
                    let missing = Finding::about(Tier::Baseline, one.metric.name, Verdict::Missing, sentence);
                    found.push(Finding { policy: Some(ours.name.clone()), ..missing });
                }
            }
        }
    }
    let p = holm(&pairs.iter().map(|(.., new, old)| mann_whitney(new, old)).collect::<Vec<f64>>());
    let family = pairs.len();
    found.extend(pairs.iter().zip(p).map(|((policy, watched, new, old), p)| {
        let change = change(new, old, (p, family), (watched.metric.better, watched.tolerance), rule);
        let said = sentence(&change, watched.metric.unit, (median(old), median(new)), watched.tolerance);
        Finding {
            policy: Some(policy.clone()),
            unit: watched.metric.unit,
            new: spread(new),
            old: Some(median(old)).filter(|old| old.is_finite()),
            ..Finding::about(Tier::Baseline, watched.metric.name, change.verdict, said)
        }
    }));
    found.extend(engine(new, old, rule));
    found
}

/// Holds two samples against each other, one of `family` comparisons whose corrected p-value is known.
pub fn change(new: &[f64], old: &[f64], (p, family): (f64, usize), (better, tolerance): (Better, f64), rule: Rule) -> Change {
    let change = |verdict, ratio, interval| Change { verdict, ratio, interval, p };
    let short = rule.least.saturating_sub(new.len().min(old.len()));
    if new.is_empty() || old.is_empty() || short > 0 {
        return change(Verdict::Inconclusive { more: Some(short) }, f64::NAN, (f64::NAN, f64::NAN));
    }
    if new == old {
        // The same seeds in virtual time, or a count that never varies.
        return change(Verdict::Same, 1.0, (1.0, 1.0));
    }
    let ratio = ratio(median(new), median(old));
    let interval = bootstrap(new, old, rule.level, Seed(1));
    let (low, high) = (1.0 / (1.0 + tolerance), 1.0 + tolerance);
    let rises = ratio > high && interval.0 > 1.0;
    let falls = ratio < low && interval.1 < 1.0;
    let verdict = if (rises || falls) && p < rule.alpha {
        match better {
            Better::Neither => Verdict::Changed,
            Better::Lower if rises => Verdict::Worse,
            Better::Higher if falls => Verdict::Worse,
            Better::Lower | Better::Higher => Verdict::Better,
        }
    } else if interval.0 >= low && interval.1 <= high {
        Verdict::Same
    } else {
        Verdict::Inconclusive { more: more(new.len().min(old.len()), ratio, interval, high, (family, rule.alpha)) }
    };
    change(verdict, ratio, interval)
}

/// How many more repetitions are likely to settle it: an interval gets narrower with the root of their number, and so many are needed at least
/// that a clear difference could be significant at all. `None` if that is too many, or not to be told.
fn more(n: usize, ratio: f64, interval: (f64, f64), high: f64, (family, alpha): (usize, f64)) -> Option<usize> {
    let half = (interval.1.ln() - interval.0.ln()) / 2.0;
    let (off, edge) = (ratio.ln().abs(), high.ln());
    let room = if off > edge { off } else { edge - off };
    let for_width = (n as f64 * (half / room).powi(2)).ceil();
    let least = (n..=MOST).find(|n| smallest_p(*n, *n) * (family as f64) < alpha)?;
    let needed = (for_width.max(least as f64)).max(n as f64 + 1.0);
    (needed.is_finite() && needed <= MOST as f64).then(|| needed as usize - n)
}

/// What was found, with the numbers that it rests on.
pub(super) fn sentence(change: &Change, unit: Unit, (old, new): (f64, f64), tolerance: f64) -> String {
    let numbers = format!("{} → {}", show(unit, old), show(unit, new));
    if change.ratio.is_nan() {
        return "there are too few repetitions to compare".to_owned();
    }
    let interval = format!("{} to {}", factor(change.interval.0), factor(change.interval.1));
    let said = format!("{numbers} ({}; 95 % sure of {interval}; p {:.2e})", factor(change.ratio), change.p);
    match change.verdict {
        Verdict::Inconclusive { more: Some(more) } => {
            let repetitions = if more == 1 { "repetition" } else { "repetitions" };
            format!(
                "{said}: the noise hides whether that is within {}; about {more} more {repetitions} would tell",
                plus_minus(tolerance)
            )
        }
        Verdict::Inconclusive { more: None } => {
            format!(
                "{said}: the noise hides whether that is within {}, and no sensible number of repetitions would tell",
                plus_minus(tolerance)
            )
        }
        Verdict::Same => format!("{said}, within {}", plus_minus(tolerance)),
        _ => format!("{said}, beyond {}", plus_minus(tolerance)),
    }
}

fn plus_minus(tolerance: f64) -> String {
    format!("±{} %", (tolerance * 100.0 * 10.0).round() / 10.0)
}
