//! The figures of one run, and the comparison of several.
//!
//! Everything here is folded from a [`RunRecord`]; nothing is measured here. Times are counted from the first arrival. A job
//! that did not complete has no completion time: it ranks last and is never dropped, so that a policy which loses jobs
//! cannot look fast.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::{Attempt, JobRecord, Peak, RunRecord};
use crate::scenario::Scenario;
use crate::time::Instant;

/// How many jobs came to what end. `completed + permanent + exhausted + unfinished = jobs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Jobs that arrived, or should have.
    pub jobs: u64,
    /// Completed.
    pub completed: u64,
    /// Discarded because the failure was permanent.
    pub permanent: u64,
    /// Discarded because the retries were spent: lost to the outage.
    pub exhausted: u64,
    /// Not in a terminal state when the run ended.
    pub unfinished: u64,
}

impl Counts {
    /// Discarded for whatever reason.
    pub fn discarded(&self) -> u64 {
        self.permanent + self.exhausted
    }

    /// Jobs that could have succeeded and did not: exhausted or unfinished.
    pub fn lost(&self) -> u64 {
        self.exhausted + self.unfinished
    }
}

/// Percentiles of a duration, in milliseconds, from an HDR histogram with 3 significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// How many values.
    pub count: u64,
    /// Median.
    pub p50_ms: f64,
    /// 90 %.
    pub p90_ms: f64,
    /// 99 %.
    pub p99_ms: f64,
    /// The greatest.
    pub max_ms: f64,
}

/// What bounded the request rate while work was waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Nothing: slots were free whenever a job was due.
    Policy,
    /// Slots were waiting for the downstream.
    Downstream,
    /// Slots were waiting for claims and settlements.
    Database,
    /// The harness or the machine: timers ran late or the processors were full.
    Harness,
}

/// The figures of one policy's run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Jobs by their end.
    pub counts: Counts,
    /// Calls sent to the downstream.
    pub requests: u64,
    /// Calls per job.
    pub amplification: f64,
    /// Calls sent inside an outage window that failed.
    pub wasted_requests: u64,
    /// Busiest stampede window over all calls.
    pub stampede_peak: Peak,
    /// Busiest stampede window over first attempts.
    pub first_peak: Peak,
    /// Busiest stampede window over retries.
    pub retry_peak: Peak,
    /// Busiest stampede window over calls sent after an outage's end and before the next outage; `None` without an outage.
    pub recovery_peak: Option<Peak>,
    /// The stampede peak over the mean number of calls in a window of that length, first arrival to last settlement.
    pub peak_over_mean: Option<f64>,
    /// Time until 50 % of all jobs were completed; `None` if they never were.
    pub completion_p50: Option<Duration>,
    /// Time until 90 % of all jobs were completed.
    pub completion_p90: Option<Duration>,
    /// Time until 99 % of all jobs were completed.
    pub completion_p99: Option<Duration>,
    /// Time until all jobs were completed.
    pub completion_p100: Option<Duration>,
    /// First arrival to last settlement; `None` while jobs are unfinished.
    pub makespan: Option<Duration>,
    /// From the end of the last outage to the first moment at which no more jobs wait than when the outage began, jobs
    /// lost to it counted as waiting for ever. `None` without an outage, or if it never came.
    pub time_to_recover: Option<Duration>,
    /// Call sent to answer.
    pub latency: Percentiles,
    /// Arrival to completion, of completed jobs.
    pub job_time: Percentiles,
    /// Due to claimed.
    pub schedule_lag: Percentiles,
    /// Claim asked for to claim answered.
    pub claim_latency: Percentiles,
    /// Settlement asked for to settlement confirmed.
    pub settle_latency: Percentiles,
    /// Claim statements sent.
    pub claims: u64,
    /// Claims that found nothing.
    pub empty_claims: u64,
    /// Transactions committed or rolled back for the workers.
    pub transactions: u64,
    /// Attempts whose lease had been lost.
    pub lost_leases: u64,
    /// Calls that reached the downstream, as it counted them; a refused or timed-out connection does not.
    pub arrivals_at_downstream: u64,
    /// What bounded the request rate.
    pub limit: Limit,
    /// One sentence on how that was found, with figures.
    pub limit_evidence: String,
}

/// One policy's run with everything that was recorded.
#[derive(Clone, Debug)]
pub struct Run {
    /// The policy's name.
    pub policy: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// The seed of this repetition.
    pub seed: u64,
    /// What was recorded.
    pub record: RunRecord,
    /// The figures.
    pub summary: Summary,
    /// Interrupted before its end: the figures cover a part only.
    pub partial: bool,
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

#[allow(unused)]
fn unused(_: &Attempt, _: &JobRecord, _: Instant) {}
