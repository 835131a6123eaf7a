//! Baselines that are none, or not the right one: each has its own error, and none is ever a pass.

use super::{Desk, SMALL, Said};

#[test]
fn the_same_code_passes_and_an_update_changes_nothing() {
    let desk = Desk::with(SMALL);
    let text = desk.baseline();
    let said = desk.gate(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with("PASS  small: 3 of 3 checks are good\n"), "{said:?}");
    let again = desk.gate(&["--update"]);
    assert_eq!((again.code, desk.read("base.json")), (Some(0), text), "{again:?}");
    // Comments and names of a scenario are no other scenario.
    desk.write("scenario.toml", &format!("# changed\n{}", SMALL.replace("name = 'small'", "name = 'other'")));
    assert_eq!(desk.gate(&[]).code, Some(0));
}

#[test]
fn each_way_to_be_no_baseline_has_its_own_error() {
    let desk = Desk::with(SMALL);
    let good = desk.baseline();
    let cut = &good[..good.len() * 2 / 3];
    let other = SMALL.replace("count = 40", "count = 41");
    let cases: Vec<(&str, String, &str)> = vec![
        ("cut short", cut.to_owned(), "ends in the middle"),
        ("empty", String::new(), "ends in the middle"),
        ("merged", good.replace("\"time\"", "<<<<<<< HEAD\n\"time\""), "is not JSON, from line"),
        ("a report", "{\"schema_version\": 1}".to_owned(), "this is not a baseline"),
        ("older", good.replace("\"simq_baseline\": 1", "\"simq_baseline\": 0"), "is of version 0"),
        ("newer", good.replace("\"simq_baseline\": 1", "\"simq_baseline\": 2"), "knows none beyond 1"),
        ("edited", good.replacen("\"lost\": [", "\"lost\": [1", 1), "was changed by hand"),
        ("without a figure", without(&good, "recovery"), "was changed by hand"),
    ];
    let mut seen: Vec<String> = Vec::new();
    for (name, text, message) in cases {
        desk.write("base.json", &text);
        let said = desk.gate(&[]);
        assert_eq!(said.code, Some(2), "{name}: {said:?}");
        assert!(said.err.starts_with("error: `base.json`: ") && said.err.contains(message), "{name}: {said:?}");
        assert!(said.out.is_empty() && !said.out.contains("PASS"), "{name}: {said:?}");
        seen.push(said.err);
    }
    desk.write("base.json", &good);
    desk.write("scenario.toml", &other);
    let said = desk.gate(&[]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("whose file said something else"), "{said:?}");
    desk.write("scenario.toml", SMALL);
    let said = desk.gate(&["--time", "real"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("was made in virtual time"), "{said:?}");
    let said = desk.simq(&["gate", "scenario.toml", "--baseline", "none.json"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("there is no baseline `none.json`"), "{said:?}");
}

/// The text without the first line that holds a word.
fn without(text: &str, word: &str) -> String {
    let line = text.lines().find(|line| line.contains(word)).unwrap();
    text.replacen(&format!("{line}\n"), "", 1)
}

#[test]
fn a_baseline_that_lacks_a_figure_or_a_policy_fails_and_says_which() {
    let desk = Desk::with(SMALL);
    let mut runs = simq::check::parse(&desk.baseline()).unwrap();
    runs.policies[0].figures.remove("requests");
    runs.policies.remove(1);
    desk.write("base.json", &simq::check::write(&runs));
    let said = desk.gate(&[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let missing: Vec<&str> = said.out.lines().filter(|line| line.starts_with("missing")).collect();
    assert_eq!(missing.len(), 2, "{said:?}");
    assert!(missing.iter().any(|line| line.contains("none · requests") && line.contains("lacks this figure")), "{said:?}");
    assert!(missing.iter().any(|line| line.contains("constant · the policy") && line.contains("no such policy")), "{said:?}");
}

#[test]
fn a_real_baseline_of_another_machine_can_not_be_compared() {
    use simq::check::{Rule, Time, noisy, watched};
    let desk = Desk::with(SMALL);
    let mut new = simq::check::parse(&desk.baseline()).unwrap();
    new.time = Time::Real;
    let mut old = new.clone();
    old.machine.insert("cores".to_owned(), "64".to_owned());
    let found = noisy(&new, &old, &watched(&[]).unwrap(), Rule::default());
    assert_eq!(found.iter().map(|finding| finding.verdict.to_string()).collect::<Vec<_>>(), ["not comparable"]);
    assert!(found[0].sentence.contains("`cores` was 64"), "{found:?}");
    new.machine = old.machine.clone();
    new.unfit.push("the harness was the limit of `none`".to_owned());
    let found = noisy(&new, &old, &watched(&[]).unwrap(), Rule::default());
    assert_eq!(found.iter().map(|finding| finding.verdict.to_string()).collect::<Vec<_>>(), ["not comparable"]);
    let judgement = simq::check::Judgement { findings: found, ..Default::default() };
    assert_eq!(judgement.outcome(false), simq::check::Outcome::Undecided);
}

#[test]
fn nothing_but_a_baseline_is_replaced_or_removed() {
    let desk = Desk::with(SMALL);
    desk.baseline();
    let twice: Said = desk.simq(&["baseline", "save", "scenario.toml", "--out", "base.json"]);
    assert_eq!(twice.code, Some(2));
    assert!(twice.err.contains("give --update to replace it"), "{twice:?}");
    desk.write("mine.json", "{\"precious\": true}");
    for args in [
        &["baseline", "save", "scenario.toml", "--out", "mine.json", "--update"][..],
        &["gate", "scenario.toml", "--baseline", "mine.json", "--update"],
        &["baseline", "rm", "base.json", "mine.json"],
    ] {
        let said = desk.simq(args);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("`mine.json` is not a baseline"), "{said:?}");
    }
    assert_eq!(desk.read("mine.json"), "{\"precious\": true}");
    assert_eq!(desk.simq(&["baseline", "rm", "base.json"]).code, Some(0));
    assert!(!desk.path("base.json").exists());
    assert_eq!(desk.gate(&[]).code, Some(2), "it is gone");
}

#[test]
fn an_update_is_not_written_over_a_broken_assertion() {
    let desk = Desk::with(SMALL);
    let text = desk.baseline();
    desk.write("scenario.toml", &SMALL.replace("at_most = 2", "at_least = 30").replace("'20ms'", "'30ms'"));
    let said = desk.gate(&["--update"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(desk.read("base.json"), text);
    desk.write("scenario.toml", &SMALL.replace("'20ms'", "'30ms'"));
    assert_eq!(desk.gate(&[]).code, Some(2), "another scenario");
    assert_eq!(desk.gate(&["--update"]).code, Some(0));
    assert_ne!(desk.read("base.json"), text);
    assert_eq!(desk.gate(&[]).code, Some(0));
}

#[test]
fn baselines_are_listed_with_what_is_wrong_with_them() {
    let desk = Desk::with(SMALL);
    let text = desk.baseline();
    std::fs::create_dir(desk.path("baselines")).unwrap();
    desk.write("baselines/good.json", &text);
    desk.write("baselines/bad.json", &text[..100]);
    let said = desk.simq(&["baseline", "list"]);
    assert_eq!(said.code, Some(0));
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("baselines/bad.json: not usable: the baseline ends in the middle"), "{said:?}");
    assert!(
        lines[1].starts_with("baselines/good.json: scenario small, virtual time, 2 repetitions of none, constant"),
        "{said:?}"
    );
    let shown = desk.simq(&["baseline", "show", "base.json"]);
    assert!(shown.out.contains("\n  amplification "), "{shown:?}");
}
