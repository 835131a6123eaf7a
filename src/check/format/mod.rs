//! A judgement for readers of all kinds: people, CI systems, and services that keep a history.

mod github;
mod history;
#[cfg(feature = "cli")]
mod junit;
mod markdown;
mod text;

pub use github::{annotations, cut};
pub use history::{benchmark_action, bmf};
#[cfg(feature = "cli")]
pub use junit::junit;
pub use markdown::markdown;
pub use text::text;

use serde_json::{Value, json};

use super::{Judgement, Outcome};

/// Raised when a reader of an older document could misread a newer one.
const SCHEMA_VERSION: u32 = 1;

/// The whole judgement as JSON.
pub fn json(judgement: &Judgement, outcome: Outcome) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "simq": env!("CARGO_PKG_VERSION"),
        "outcome": outcome,
        "judgement": judgement,
    })
}

/// One sentence on what it all comes to.
pub fn headline(judgement: &Judgement, outcome: Outcome) -> String {
    use super::Verdict as V;
    let failed = judgement.findings.iter().filter(|finding| finding.fails).count();
    let all = judgement.findings.len();
    let undecided = judgement.count(|verdict| matches!(verdict, V::Inconclusive { .. }));
    let refused = judgement.count(|verdict| verdict == V::NotComparable);
    let rest = match undecided {
        0 => String::new(),
        1 => ", 1 inconclusive".to_owned(),
        some => format!(", {some} inconclusive"),
    };
    match outcome {
        Outcome::Pass => format!("{}: {} of {all} checks are good{rest}", judgement.name, all - undecided),
        Outcome::Fail => format!("{}: {failed} of {all} checks failed{rest}", judgement.name),
        Outcome::Undecided if all == 0 => format!("{}: nothing was checked", judgement.name),
        Outcome::Undecided if refused > 0 => format!("{}: the runs can't be compared with the baseline", judgement.name),
        Outcome::Undecided => format!("{}: no check failed{rest}", judgement.name),
    }
}
