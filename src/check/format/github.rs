//! For GitHub Actions: annotations, which hang on lines of files, and a summary that fits.
//!
//! Source: GitHub's documentation of workflow commands; a step's summary may have 1 MiB and is dropped whole if it is longer.

use super::headline;
use crate::check::{Finding, Judgement, Outcome, Verdict};

/// Workflow commands, a line each: errors for what failed, warnings for what could not be decided, and one notice for all.
pub fn annotations(judgement: &Judgement, outcome: Outcome) -> String {
    let mut lines: Vec<String> = judgement.findings.iter().filter_map(|finding| annotation(judgement, finding)).collect();
    let title = property("simq gate");
    lines.push(format!("::notice title={title}::{}", message(&headline(judgement, outcome))));
    lines.join("\n") + "\n"
}

fn annotation(judgement: &Judgement, finding: &Finding) -> Option<String> {
    let level = match finding.verdict {
        _ if finding.fails => "error",
        Verdict::NotComparable => "error",
        Verdict::Inconclusive { .. } => "warning",
        _ => return None,
    };
    let line = finding.line.map(|line| format!(",line={line}")).unwrap_or_default();
    let file = property(&judgement.file);
    let title = property(&format!("{}: {}", finding.verdict, finding.title()));
    Some(format!("::{level} file={file}{line},title={title}::{}", message(&finding.sentence)))
}

fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// A text of at most `room` bytes: cut at a line's end, with a line on how much was left out. Nothing if there is not even room for that.
pub fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let note = |left_out: usize| format!("\n… {left_out} more lines were left out to keep within the limit.\n");
    let Some(most) = room.checked_sub(note(usize::MAX).len()) else { return String::new() };
    let end = (0..=most.min(text.len())).rev().find(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n').unwrap_or(0);
    format!("{}{}", &text[..end], note(text[end..].lines().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_cut_at_a_line_and_says_so() {
        let text = "line of text, ümlaut\n".repeat(1000);
        for room in [0, 10, 100, 1000, 20_000, 30_000] {
            let kept = cut(&text, room);
            assert!(kept.len() <= room, "{room}: {}", kept.len());
            assert!(!(100..=22_000).contains(&room) || kept.contains("more lines were left out"), "{room}");
        }
        assert_eq!(cut(&text, text.len()), text);
    }

    #[test]
    fn what_ends_a_command_is_escaped() {
        assert_eq!(property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
    }
}
