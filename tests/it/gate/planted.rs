//! Regressions of a policy, planted as a setting that the code would have lost: each is caught, and named.

use simq::check::format::text;
use simq::check::{Finding, Judgement, Verdict, assertions, exact};
use simq::policy::{Jitter, Policy};

use super::{SMALL, ci, line_of, played, said};
use crate::gate::Desk;

fn ci_with(plant: impl Fn(&str, &mut Policy)) -> (Vec<Finding>, Vec<Finding>) {
    let (mut scenario, baseline) = ci();
    scenario.assertions.retain(|assertion| !assertion.metric.starts_with("engine_"));
    let runs = played(&scenario, baseline.repetitions() as u32, plant);
    (assertions(&scenario.assertions, &runs), exact(&runs, &baseline))
}

fn found(findings: &[Finding], policy: &str, metric: &str) -> Verdict {
    let finding = findings.iter().find(|finding| finding.policy.as_deref() == Some(policy) && finding.metric == metric);
    finding.unwrap_or_else(|| panic!("nothing of {policy} {metric} in {findings:?}")).verdict
}

#[test]
fn the_code_as_it_is_equals_its_baseline_in_every_figure() {
    let (asserted, exact) = ci_with(|_, _| {});
    assert!(asserted.iter().all(|finding| finding.verdict == Verdict::Held), "{asserted:?}");
    let verdicts: Vec<Verdict> = exact.iter().map(|finding| finding.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Same; 4],
        "if the change is meant: simq gate scenarios/ci.toml --baseline baselines/ci.json --update\n{exact:?}"
    );
}

#[test]
fn a_policy_that_lost_its_jitter_is_caught_twice() {
    let lose_jitter = |name: &str, policy: &mut Policy| {
        if name == "jitter" {
            policy.jitter = Jitter::None;
        }
    };
    let (asserted, exact) = ci_with(lose_jitter);
    let broken: Vec<&Finding> = asserted.iter().filter(|finding| finding.fails).collect();
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!((broken[0].title().as_str(), broken[0].verdict), ("jitter · recovery_peak", Verdict::Broken));
    let file = std::fs::read_to_string(super::root().join("scenarios/ci.toml")).unwrap();
    let line = file.lines().nth(broken[0].line.unwrap() - 1).unwrap();
    assert_eq!(line, "metric = \"recovery_peak\"");
    let broken_line = broken[0].line.unwrap();
    assert_eq!(found(&exact, "jitter", "recovery_peak"), Verdict::Worse);
    assert_eq!(found(&exact, "exponential", "all figures"), Verdict::Same, "and only that policy");
    let findings = [asserted, exact].concat();
    let judgement = Judgement { name: "ci".into(), file: "scenarios/ci.toml".into(), findings, ..Judgement::default() };
    let told = text(&judgement, judgement.outcome(false));
    println!("{told}");
    let first = told.lines().next().unwrap();
    assert!(
        first.starts_with("broken          jitter · recovery_peak ") && first.contains(&format!("ci.toml:{broken_line}: ")),
        "{told}"
    );
    assert!(told.lines().last().unwrap().starts_with("FAIL  ci: "), "{told}");
}

#[test]
fn one_retry_too_many_is_caught() {
    let one_more = |name: &str, policy: &mut Policy| {
        if name == "none" {
            policy.max_retries = Some(9);
        }
    };
    let (_, exact) = ci_with(one_more);
    assert_eq!(found(&exact, "none", "requests"), Verdict::Worse);
    assert_eq!(found(&exact, "none", "amplification"), Verdict::Worse);
    assert!(exact.iter().filter(|finding| finding.fails).all(|finding| finding.policy.as_deref() == Some("none")), "{exact:?}");
}

#[test]
fn one_retry_too_many_is_caught_for_real_and_the_failure_names_its_line() {
    // Nothing ever succeeds, so that a job's requests are its retries and one more, on any machine.
    let text = SMALL.replace("error_rate = 0.3", "error_rate = 1.0").replace(
        "metric = 'lost'\npolicy = 'constant'\nat_most = 2",
        "metric = 'amplification'\nat_most = 7\n[[assert]]\nmetric = 'amplification'\nat_least = 7",
    );
    let desk = Desk::with(&text);
    let run = |name: &str| said(desk.command(&["run", name, "--out", "out"]).env("SIMQ_PG_FETCH", "0"));
    let good = run("scenario.toml");
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(good.err.contains("4 assertions hold"), "{good:?}");
    let planted = text.replace("kind = 'none'\n", "kind = 'none'\nmax_retries = 7\n");
    desk.write("planted.toml", &planted);
    let bad = run("planted.toml");
    assert_eq!(bad.code, Some(3), "{bad:?}");
    let line = line_of(&planted, "'amplification'");
    let named = format!("error: planted.toml:{line}: assertion broken: none · amplification: 8, and it was to be at most 7");
    assert!(bad.err.contains(&named), "{bad:?}");
    assert_eq!(bad.err.matches("assertion broken").count(), 1, "{bad:?}");
}
