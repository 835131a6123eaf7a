//! For every CI system: JUnit XML, a suite per tier and a case per finding.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use crate::check::{Finding, Judgement, Tier, Verdict};

/// The judgement as JUnit XML. What can't be compared is an error, what is inconclusive is skipped (and a failure with `strict`).
///
/// # Errors
/// If the XML can't be written, which only a full memory prevents.
pub fn junit(judgement: &Judgement, strict: bool) -> Result<String, SerializeError> {
    let mut report = Report::new("simq gate");
    for tier in [Tier::Assertion, Tier::Exact, Tier::Baseline, Tier::Bench] {
        let findings: Vec<&Finding> = judgement.findings.iter().filter(|finding| finding.tier == tier).collect();
        if findings.is_empty() {
            continue;
        }
        let mut suite = TestSuite::new(format!("{} · {tier}", judgement.name));
        suite.add_test_cases(findings.into_iter().map(|finding| case(judgement, finding, strict)));
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn case(judgement: &Judgement, finding: &Finding, strict: bool) -> TestCase {
    let status = match finding.verdict {
        _ if finding.fails => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::NotComparable => TestCaseStatus::non_success(NonSuccessKind::Error),
        Verdict::Inconclusive { .. } if strict => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Inconclusive { .. } => TestCaseStatus::skipped(),
        _ => TestCaseStatus::success(),
    };
    let mut status = status;
    let place = finding.line.map(|line| format!("{}:{line}: ", judgement.file)).unwrap_or_default();
    status.set_message(format!("{}: {place}{}", finding.verdict, finding.sentence));
    status.set_type(finding.verdict.to_string());
    // Two assertions may be of one figure.
    let line = finding.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let mut case = TestCase::new(format!("{}{line}", finding.title()), status);
    case.set_classname(format!("simq.{}", judgement.name));
    if let Some(line) = finding.line {
        case.extra.insert("file".into(), judgement.file.as_str().into());
        case.extra.insert("line".into(), line.to_string().into());
    }
    case.set_system_out(format!("{}: {}", finding.verdict, finding.sentence));
    case
}
