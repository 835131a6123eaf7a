//! Whether runs are as they should be: figures held against assertions, and against a baseline.
//!
//! ```text
//!  Summary, per policy and repetition ─► Runs ─┬─► assertions   lines of the scenario: values, and ratios within one run
//!                                              ├─► exact        virtual time: every figure equal, no noise at all
//!  baseline file ─► Runs ──────────────────────┴─► noisy        real time: medians, tolerances, confidence, Holm
//!  target/criterion ─► benches ────────────────────► noisy
//!                                                     │
//!                                                 Judgement ─► text, JSON, Markdown, JUnit, BMF, annotations …
//! ```
//! Everything here is a pure function of data: nothing is run and no file is opened. The order above is the order in which the tiers can be
//! trusted. Two rules hold in each: what could not be decided is said to be undecided and never passes as the same, and what can't be
//! compared (another scenario, another machine, a run that the harness spoiled) is refused.

mod assertion;
mod baseline;
mod bench;
mod exact;
pub mod format;
mod noisy;
mod runs;
mod show;
mod stats;
mod watch;

use std::fmt;

use serde::Serialize;

pub use assertion::assertions;
pub use baseline::{Error as BaselineError, SCHEMA_VERSION, parse, write};
pub use bench::{Bench, Error as BenchError, benches, sample};
pub use exact::exact;
pub use noisy::{Change, Rule, change, engine, noisy};
pub use runs::{PolicyRuns, Runs, Time, comparable};
pub use show::{factor, show};
pub use stats::{bootstrap, holm, mann_whitney, median, smallest_p};
pub use watch::{WATCHED, Watched, watched};

use crate::metrics::Unit;

/// How a finding was come by, in the order in which they can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// A line of the scenario, within one run.
    Assertion,
    /// Virtual time against a baseline: equality.
    Exact,
    /// Real time against a baseline: statistics.
    Baseline,
    /// A micro-benchmark against an earlier one.
    Bench,
}

/// What was found of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// An assertion held.
    Held,
    /// An assertion did not hold.
    Broken,
    /// Nothing changed, within the tolerance.
    Same,
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// It changed, and neither way is better.
    Changed,
    /// The noise is too great for a verdict; so many more repetitions are likely to settle it, if that is known.
    Inconclusive {
        /// More repetitions.
        more: Option<usize>,
    },
    /// There is nothing to hold it against, though there should be.
    Missing,
    /// Another machine, or a run that the harness spoiled.
    NotComparable,
}

/// One figure, held against something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// How it was come by.
    pub tier: Tier,
    /// The policy, if it is of one.
    pub policy: Option<String>,
    /// The figure.
    pub metric: String,
    /// The figure's unit.
    #[serde(skip)]
    pub unit: Unit,
    /// What was found.
    pub verdict: Verdict,
    /// Whether the gate says no because of it.
    pub fails: bool,
    /// What was found, in a sentence.
    pub sentence: String,
    /// The line of the scenario, for an assertion.
    pub line: Option<usize>,
    /// Of this run: the least, the middle and the greatest of the repetitions that have a value.
    pub new: Option<[f64; 3]>,
    /// What it was held against: the baseline's median, or an assertion's bound.
    pub old: Option<f64>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Judgement {
    /// The scenario's name, or what was benched.
    pub name: String,
    /// The scenario's file, as it was given.
    pub file: String,
    /// Findings, by tier.
    pub findings: Vec<Finding>,
    /// What a reader must know besides.
    pub notes: Vec<String>,
    /// The figures of this run, one per policy and figure, for those who keep a history of them.
    pub figures: Vec<Figure>,
}

/// A figure of this run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The policy, or `engine`.
    pub policy: String,
    /// The figure.
    pub metric: String,
    /// Its unit.
    #[serde(skip)]
    pub unit: Unit,
    /// Whether higher is better; `None` if neither way is.
    pub higher_is_better: Option<bool>,
    /// The least, the middle and the greatest of the repetitions.
    pub spread: [f64; 3],
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Yes.
    Pass,
    /// No.
    Fail,
    /// It can't say.
    Undecided,
}

impl Judgement {
    /// What all findings come to. What can't be compared is never a pass; what is inconclusive is none with `strict`.
    pub fn outcome(&self, strict: bool) -> Outcome {
        let undecided = |finding: &Finding| match finding.verdict {
            Verdict::NotComparable => true,
            Verdict::Inconclusive { .. } => strict,
            _ => false,
        };
        if self.findings.iter().any(|finding| finding.fails) {
            Outcome::Fail
        } else if self.findings.is_empty() || self.findings.iter().any(undecided) {
            Outcome::Undecided
        } else {
            Outcome::Pass
        }
    }

    /// How many findings have such a verdict.
    pub fn count(&self, of: impl Fn(Verdict) -> bool) -> usize {
        self.findings.iter().filter(|finding| of(finding.verdict)).count()
    }
}

impl Finding {
    /// The figure and whose it is: `jitter · recovery_peak`.
    pub fn title(&self) -> String {
        match &self.policy {
            Some(policy) => format!("{policy} · {}", self.metric),
            None => self.metric.clone(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Held => write!(f, "held"),
            Verdict::Broken => write!(f, "broken"),
            Verdict::Same => write!(f, "same"),
            Verdict::Better => write!(f, "better"),
            Verdict::Worse => write!(f, "worse"),
            Verdict::Changed => write!(f, "changed"),
            Verdict::Inconclusive { .. } => write!(f, "inconclusive"),
            Verdict::Missing => write!(f, "missing"),
            Verdict::NotComparable => write!(f, "not comparable"),
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Assertion => "assertion",
            Tier::Exact => "virtual time",
            Tier::Baseline => "baseline",
            Tier::Bench => "bench",
        })
    }
}
