//! What a report is made of: runs of one scenario under several policies, and the circumstances.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metrics::{RunRecord, Summary};
use crate::scenario::Scenario;

/// One policy's run with everything that was recorded.
#[derive(Clone, Debug)]
pub struct Run {
    /// The policy's name.
    pub policy: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// The seed of this repetition.
    pub seed: u64,
    /// What was recorded; of many repetitions only the first may have been kept.
    pub record: RunRecord,
    /// The figures.
    pub summary: Summary,
    /// Interrupted before its end: the figures cover a part only.
    pub partial: bool,
}

impl Run {
    /// Whether its record was kept: there is no run without jobs.
    pub fn is_recorded(&self) -> bool {
        !self.record.jobs.is_empty()
    }
}

/// The circumstances of a comparison: names and values to print, such as `postgres.synchronous_commit` = `on`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Conditions(pub BTreeMap<String, String>);

/// Everything that a report is made of.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The scenario.
    pub scenario: Scenario,
    /// Runs in the order of repetition, then of the scenario's policies.
    pub runs: Vec<Run>,
    /// Versions, machine, database settings.
    pub conditions: Conditions,
    /// What a reader must know before believing a figure: an overloaded harness, an interruption.
    pub warnings: Vec<String>,
    /// Interrupted: not all runs are there, or the last is partial.
    pub partial: bool,
}

impl Comparison {
    /// The repetitions of which there is no record, only figures.
    pub(super) fn unrecorded(&self) -> usize {
        self.runs.iter().filter(|run| !run.is_recorded()).count()
    }
}
