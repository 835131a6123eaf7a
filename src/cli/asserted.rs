//! The scenario's assertions after a run: what did not hold is said, with the line of the file on which it stands.

use std::collections::BTreeMap;
use std::path::Path;

use super::say::say;
use crate::check::{self, Finding, Runs, Time};
use crate::metrics::EngineMetric;
use crate::report::Comparison;

/// Whether every assertion of the scenario holds; says so, or which does not. Those of the engine are the gate's.
pub(super) fn hold(comparison: &Comparison, file: &Path, quiet: bool) -> bool {
    let mut asserted = comparison.scenario.assertions.clone();
    asserted.retain(|assertion| EngineMetric::named(&assertion.metric).is_none());
    // With --policy some policies were left out on purpose.
    let was_run = |name: &String| comparison.runs.iter().any(|run| run.policy == *name);
    asserted.retain(|assertion| {
        let other = match &assertion.bound {
            crate::scenario::Bound::Ratio { of, .. } => was_run(of),
            crate::scenario::Bound::Value(_) => true,
        };
        other && assertion.policy.as_ref().is_none_or(was_run)
    });
    let findings = check::assertions(&asserted, &runs(comparison));
    let broken: Vec<&Finding> = findings.iter().filter(|finding| finding.fails).collect();
    for finding in &broken {
        let line = finding.line.unwrap_or_default();
        say(&format!(
            "error: {}:{line}: assertion {}: {}: {}",
            file.display(),
            finding.verdict,
            finding.title(),
            finding.sentence
        ));
    }
    if broken.is_empty() && !findings.is_empty() && !quiet {
        say(&format!("{} assertions hold", findings.len()));
    }
    broken.is_empty()
}

fn runs(comparison: &Comparison) -> Runs {
    let mut runs = Runs {
        scenario: comparison.scenario.name.clone(),
        fingerprint: String::new(),
        time: Time::Real,
        simq: String::new(),
        machine: BTreeMap::new(),
        policies: Vec::new(),
        engine: BTreeMap::new(),
        unfit: Vec::new(),
    };
    for run in &comparison.runs {
        runs.add(&run.policy, run.seed, &run.summary);
    }
    runs
}
