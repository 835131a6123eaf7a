//! What is known of some runs of a scenario: every figure of every repetition, and where they were made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stats::median;
use super::{Figure, Finding, Tier, Verdict};
use crate::metrics::{Better, METRICS, Summary, Unit};

/// In which time runs were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Time {
    /// Simulated: the same each time.
    Virtual,
    /// On Postgres, with workers and a downstream: noisy.
    Real,
}

/// Runs of one scenario under several policies.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The scenario's name.
    pub scenario: String,
    /// What the scenario's file says: see [`crate::scenario::fingerprint`].
    pub fingerprint: String,
    /// In which time they were made.
    pub time: Time,
    /// The version of simq that made them.
    pub simq: String,
    /// Where they were made: what must be alike for real figures to be compared.
    pub machine: BTreeMap<String, String>,
    /// The policies, in the order of the scenario.
    pub policies: Vec<PolicyRuns>,
    /// Ratios of the engine to a raw limit, one value per round of the probe; empty if it was not asked.
    pub engine: BTreeMap<String, Vec<f64>>,
    /// Why the figures must not be believed: the harness was the limit, or they are not complete.
    pub unfit: Vec<String>,
}

/// One policy's repetitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyRuns {
    /// Its name.
    pub name: String,
    /// The seed of each repetition.
    pub seeds: Vec<u64>,
    /// Every figure of the catalogue, with a value per repetition; `None` where a run had no such value.
    pub figures: BTreeMap<String, Vec<Option<f64>>>,
}

impl Runs {
    /// Adds a repetition of a policy.
    pub fn add(&mut self, policy: &str, seed: u64, summary: &Summary) {
        let known = self.policies.iter().position(|runs| runs.name == policy);
        let place = known.unwrap_or_else(|| {
            self.policies.push(PolicyRuns { name: policy.to_owned(), ..PolicyRuns::default() });
            self.policies.len() - 1
        });
        let runs = &mut self.policies[place];
        runs.seeds.push(seed);
        for metric in METRICS {
            let value = metric.value(summary).map(crate::metrics::Value::as_f64);
            runs.figures.entry(metric.name.to_owned()).or_default().push(value);
        }
    }

    /// The policy of this name.
    pub fn policy(&self, name: &str) -> Option<&PolicyRuns> {
        self.policies.iter().find(|runs| runs.name == name)
    }

    /// The fewest repetitions that a policy has.
    pub fn repetitions(&self) -> usize {
        self.policies.iter().map(|runs| runs.seeds.len()).min().unwrap_or(0)
    }

    /// Figures to keep a history of: the medians of every policy, and of the engine's ratios.
    pub fn history(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for runs in &self.policies {
            for metric in METRICS {
                let higher_is_better = match metric.better {
                    Better::Higher => Some(true),
                    Better::Lower => Some(false),
                    Better::Neither => None,
                };
                let values: Vec<f64> = runs.figures.get(metric.name).into_iter().flatten().flatten().copied().collect();
                if let Some(spread) = spread(&values) {
                    let (policy, metric, unit) = (runs.name.clone(), metric.name.to_owned(), metric.unit);
                    figures.push(Figure { policy, metric, unit, higher_is_better, spread });
                }
            }
        }
        let engine = self.engine.iter().filter_map(|(name, values)| Some((name, spread(values)?)));
        figures.extend(engine.map(|(metric, spread)| Figure {
            policy: "engine".to_owned(),
            metric: metric.clone(),
            unit: Unit::Ratio,
            higher_is_better: Some(false),
            spread,
        }));
        figures
    }
}

impl PolicyRuns {
    /// A figure's values, one per repetition; those that there are not are infinite, since none is beyond all numbers.
    pub fn values(&self, metric: &str) -> Option<Vec<f64>> {
        let values = self.figures.get(metric)?;
        Some(values.iter().map(|value| value.unwrap_or(f64::INFINITY)).collect())
    }
}

/// The least, the middle and the greatest; `None` of nothing.
pub(super) fn spread(values: &[f64]) -> Option<[f64; 3]> {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let least = finite.iter().copied().reduce(f64::min)?;
    Some([least, median(&finite), finite.iter().copied().reduce(f64::max)?])
}

/// What keeps new runs from being compared with those of a baseline: a finding for each reason, none if nothing does.
pub fn comparable(new: &Runs, old: &Runs) -> Vec<Finding> {
    let mut reasons: Vec<String> = new.unfit.clone();
    // Virtual time depends on nothing but how the platform rounds.
    let matters = |key: &str| new.time == Time::Real || key == "os";
    let keys: std::collections::BTreeSet<&String> = new.machine.keys().chain(old.machine.keys()).collect();
    for key in keys.into_iter().filter(|key| matters(key)) {
        let [ours, theirs] = [new, old].map(|runs| runs.machine.get(key).map_or("unknown", String::as_str));
        if ours != theirs {
            reasons.push(format!("the baseline was made elsewhere: `{key}` was {theirs} and is {ours} here"));
        }
    }
    let tier = if new.time == Time::Real { Tier::Baseline } else { Tier::Exact };
    reasons.into_iter().map(|reason| Finding::about(tier, "the runs", Verdict::NotComparable, reason)).collect()
}

impl Finding {
    /// A finding that is of no figure in particular.
    pub(super) fn about(tier: Tier, what: &str, verdict: Verdict, sentence: String) -> Finding {
        Finding {
            tier,
            policy: None,
            metric: what.to_owned(),
            unit: Unit::Ratio,
            verdict,
            fails: matches!(verdict, Verdict::Missing | Verdict::Broken | Verdict::Worse | Verdict::Changed),
            sentence,
            line: None,
            new: None,
            old: None,
        }
    }
}
