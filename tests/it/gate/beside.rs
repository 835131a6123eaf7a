//! `simq compare`: two runs beside each other, from what they left.

use super::{Desk, SMALL};

#[test]
fn two_reports_lie_beside_each_other_and_over_each_other() {
    let desk = Desk::with(SMALL);
    desk.write("other.toml", &SMALL.replace("'20ms'", "'200ms'"));
    for (scenario, out) in [("scenario.toml", "a"), ("scenario.toml", "again"), ("other.toml", "b")] {
        let said = desk.simq(&["sim", scenario, "--out", out, "--seeds", "6", "-q"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let said = desk.simq(&["compare", "a", "b", "--png", "over.png"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let row = |policy: &str, figure: &str| {
        let starts = |line: &&str| line.split_whitespace().take(2).eq([policy, figure]);
        said.out.lines().find(starts).unwrap_or_else(|| panic!("{policy} {figure}: {said:?}")).to_owned()
    };
    assert!(row("none", "requests").contains(" = "), "{said:?}");
    assert!(row("constant", "makespan_s").contains('×'), "{said:?}");
    assert!(said.out.contains("not of the same scenario file"), "{said:?}");
    assert!(std::fs::metadata(desk.path("over.png")).unwrap().len() > 10_000);

    let same = desk.simq(&["compare", "a", "again", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&same.out).unwrap();
    assert_eq!(document["cautions"].as_array().unwrap().len(), 0, "{document}");
    assert!(
        document["rows"].as_array().unwrap().iter().all(|row| row["a"] == row["b"] && row["verdict"] == "same"),
        "{document}"
    );
}

#[test]
fn a_report_can_become_a_baseline_and_be_compared_with_it() {
    let desk = Desk::with(SMALL);
    assert_eq!(desk.simq(&["sim", "scenario.toml", "--out", "a", "--seeds", "2", "-q"]).code, Some(0));
    let said = desk.simq(&["baseline", "save", "a", "--out", "base.json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = desk.gate(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(desk.simq(&["compare", "a", "base.json"]).code, Some(0));
    let said = desk.simq(&["compare", "a", "base.json", "--png", "x.png"]);
    assert!(said.code == Some(2) && said.err.contains("is a baseline, and has no series to draw"), "{said:?}");
    let said = desk.simq(&["compare", "a", "nowhere"]);
    assert!(said.code == Some(2) && said.err.contains("there is no file `nowhere`"), "{said:?}");
    desk.write("c.json", "{}");
    let said = desk.simq(&["compare", "a", "c.json"]);
    assert!(said.code == Some(2) && said.err.contains("neither a report's summary nor a baseline"), "{said:?}");
}
