//! For a pull request or a job's summary: a table, what failed on top.

use super::headline;
use crate::check::{Finding, Judgement, Outcome, Verdict};

/// The judgement as GitHub-flavoured Markdown.
pub fn markdown(judgement: &Judgement, outcome: Outcome) -> String {
    let sign = match outcome {
        Outcome::Pass => "✅",
        Outcome::Fail => "❌",
        Outcome::Undecided => "⚠️",
    };
    let mut text = format!("### {sign} simq gate: {}\n", escape(&headline(judgement, outcome)));
    let told = |finding: &&Finding| finding.fails || !matches!(finding.verdict, Verdict::Held | Verdict::Same);
    let (loud, quiet): (Vec<&Finding>, Vec<&Finding>) = judgement.findings.iter().partition(told);
    if !loud.is_empty() {
        text += &table(judgement, &loud);
    }
    for note in &judgement.notes {
        text += &format!("\n> {}\n", escape(note));
    }
    if !quiet.is_empty() {
        text +=
            &format!("\n<details><summary>{} checks are good</summary>\n{}\n</details>\n", quiet.len(), table(judgement, &quiet));
    }
    text
}

fn table(judgement: &Judgement, findings: &[&Finding]) -> String {
    let mut text = "\n| verdict | figure | found | where |\n|---|---|---|---|\n".to_owned();
    for finding in findings {
        let place = finding.line.map(|line| format!("`{}:{line}`", judgement.file)).unwrap_or_else(|| finding.tier.to_string());
        let verdict = if finding.fails { format!("**{}**", finding.verdict) } else { finding.verdict.to_string() };
        text += &format!("| {verdict} | {} | {} | {place} |\n", escape(&finding.title()), escape(&finding.sentence));
    }
    text
}

/// What would end a cell or begin a tag.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
