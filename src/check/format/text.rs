//! For a terminal and for logs: what failed first, then everything else, a line each.

use super::headline;
use crate::check::{Finding, Judgement, Outcome, Verdict};

/// The judgement as lines of text.
pub fn text(judgement: &Judgement, outcome: Outcome) -> String {
    let mut lines = Vec::new();
    let width = judgement.findings.iter().map(|finding| finding.title().chars().count()).max().unwrap_or(0).min(44);
    let mut findings: Vec<&Finding> = judgement.findings.iter().collect();
    findings.sort_by_key(|finding| (!finding.fails, rank(finding.verdict)));
    for finding in findings {
        let place = finding.line.map(|line| format!("{}:{line}: ", judgement.file)).unwrap_or_default();
        let verdict = finding.verdict.to_string();
        lines.push(format!("{verdict:<14}  {:<width$}  {place}{}", finding.title(), finding.sentence));
    }
    lines.extend(judgement.notes.iter().map(|note| format!("note: {note}")));
    let word = match outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::Undecided => "UNDECIDED",
    };
    lines.push(format!("{word}  {}", headline(judgement, outcome)));
    lines.join("\n") + "\n"
}

fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Broken | Verdict::Worse | Verdict::Missing => 0,
        Verdict::Changed | Verdict::NotComparable => 1,
        Verdict::Inconclusive { .. } => 2,
        Verdict::Better => 3,
        Verdict::Held | Verdict::Same => 4,
    }
}
