//! What the gate writes is what others read: validated by their schemas and parsers, not by our own reading.

use std::fs;

use serde_json::{Value, json};

use super::{Desk, SMALL, Said, line_of, said};

/// A desk whose gate finds all sorts of things, in every format.
fn told() -> (Desk, Said) {
    let desk = Desk::with(SMALL);
    let mut runs = simq::check::parse(&desk.baseline()).unwrap();
    // As if the code had changed: one figure of a policy was another.
    runs.policies[0].figures.insert("requests".to_owned(), vec![Some(1.0), Some(2.0)]);
    desk.write("base.json", &simq::check::write(&runs));
    desk.write("scenario.toml", &SMALL.replace("at_most = 2", "at_least = 30"));
    let formats = ["text", "json=out/gate.json", "markdown=out/gate.md", "junit=out/gate.xml", "bmf=out/bmf.json"];
    let more = ["benchmark-action=out/action.json", "github=out/github.txt"];
    let mut args = vec!["gate", "scenario.toml", "--baseline", "base.json"];
    formats.iter().chain(&more).for_each(|format| args.extend(["--format", *format]));
    let summary = desk.path("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let said = said(desk.command(&args).env("GITHUB_STEP_SUMMARY", &summary));
    assert_eq!(said.code, Some(3), "{said:?}");
    (desk, said)
}

fn json_of(desk: &Desk, name: &str) -> Value {
    serde_json::from_str(&desk.read(name)).unwrap()
}

/// As Bencher publishes it at <https://bencher.dev/bmf.json>.
fn bmf_schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema",
        "type": "object",
        "patternProperties": { ".+": { "type": "object", "patternProperties": { ".+": {
            "type": "object",
            "properties": {
                "value": { "type": "number" }, "lower_value": { "type": "number" }, "upper_value": { "type": "number" }
            },
            "required": ["value"]
        } } } }
    })
}

/// The fields of a custom benchmark, from the README of github-action-benchmark.
fn action_schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema",
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": { "type": "string" }, "value": { "type": "number" }, "unit": { "type": "string" },
                "range": { "type": "string" }, "extra": { "type": "string" }
            },
            "required": ["name", "value", "unit"],
            "additionalProperties": false
        }
    })
}

#[test]
fn histories_validate_against_their_published_schemas() {
    let (desk, _) = told();
    for (name, schema) in [("out/bmf.json", bmf_schema()), ("out/action.json", action_schema())] {
        let validator = jsonschema::draft7::new(&schema).unwrap();
        let document = json_of(&desk, name);
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert!(!validator.is_valid(&json!({ "a": { "b": {} } })), "the schema of {name} refuses what is wrong");
    }
    let bmf = json_of(&desk, "out/bmf.json");
    let lost = &bmf["small/none"]["lost"];
    assert!(lost["lower_value"].as_f64() <= lost["value"].as_f64(), "{lost}");
    // Bencher cuts nothing: a longer name is refused.
    for (name, measures) in bmf.as_object().unwrap() {
        assert!(name.len() <= 1024 && measures.as_object().unwrap().keys().all(|measure| measure.len() <= 64), "{name}");
    }
    let action = json_of(&desk, "out/action.json");
    assert!(action.as_array().unwrap().iter().any(|entry| entry["name"] == "small/none/lost" && entry["unit"] == "jobs"));
    assert!(action.as_array().unwrap().iter().all(|entry| entry["name"] != "small/none/completed"), "more is better");
}

#[test]
fn junit_is_read_by_a_parser_of_the_ecosystem() {
    let (desk, _) = told();
    let report = junit_parser::from_reader(desk.read("out/gate.xml").as_bytes()).unwrap();
    let cases: Vec<&junit_parser::TestCase> = report.suites.iter().flat_map(|suite| &suite.cases).collect();
    let names: Vec<&str> = report.suites.iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(names, ["small · assertion", "small · virtual time"]);
    assert_eq!((report.tests, report.failures, report.errors), (3, 2, 0));
    let line = line_of(SMALL, "'lost'");
    let broken = cases.iter().find(|case| case.line == Some(line as u64)).unwrap();
    let title = format!("constant · lost (line {line})");
    assert_eq!((&broken.original_name, broken.file.as_deref()), (&title, Some("scenario.toml")));
    assert!(broken.status.is_failure());
    let message = &broken.status.failure_as_ref().message;
    assert!(message.starts_with(&format!("broken: scenario.toml:{line}: ")) && message.ends_with("at least 30"), "{message}");
    let changed = cases.iter().find(|case| case.original_name == "none · requests").unwrap();
    assert!(changed.status.is_failure());
}

#[test]
fn annotations_hang_on_the_lines_of_the_scenario_and_the_summary_is_added_to() {
    let (desk, said) = told();
    let annotations = desk.read("out/github.txt");
    let lines: Vec<&str> = annotations.lines().collect();
    let line = line_of(SMALL, "'lost'");
    let broken = format!("::error file=scenario.toml,line={line},title=broken%3A constant · lost::");
    assert!(lines[0].starts_with(&broken), "{annotations}");
    assert!(lines[1].starts_with("::error file=scenario.toml,title=worse%3A none · requests::"), "{annotations}");
    assert!(lines[2].starts_with("::notice title=simq gate::small: 2 of 3 checks failed"), "{annotations}");
    let summary = desk.read("summary.md");
    assert!(summary.starts_with("before\n### ❌ simq gate: small: 2 of 3 checks failed\n"), "{summary}");
    assert!(summary.contains("| **broken** | constant · lost | "), "{summary}");
    assert_eq!(desk.read("out/gate.md"), summary["before\n".len()..]);
    assert!(said.out.starts_with("broken "), "{said:?}");
    let document = json_of(&desk, "out/gate.json");
    assert_eq!((document["schema_version"].as_u64(), document["outcome"].as_str()), (Some(1), Some("fail")));
}

#[test]
fn a_summary_stays_under_githubs_limit() {
    let desk = Desk::with(SMALL);
    desk.baseline();
    let summary = desk.path("summary.md");
    fs::write(&summary, "x".repeat((1 << 20) - 60_000)).unwrap();
    for _ in 0..3 {
        let args = ["gate", "scenario.toml", "--baseline", "base.json", "--format", "github"];
        assert_eq!(said(desk.command(&args).env("GITHUB_STEP_SUMMARY", &summary)).code, Some(0));
    }
    assert!(fs::metadata(&summary).unwrap().len() <= 1 << 20);
}

#[test]
fn criterions_results_are_judged_on_medians() {
    let desk = Desk::with(SMALL);
    let sample = |scale: f64| {
        let times: Vec<f64> = (0..50).map(|i| scale * 1000.0 * (100.0 + f64::from((i * 37) % 11))).collect();
        json!({ "sampling_mode": "Flat", "iters": vec![1000.0; 50], "times": times }).to_string()
    };
    let save = |bench: &str, baseline: &str, scale: f64| {
        let dir = desk.path(&format!("criterion/{bench}/{baseline}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("sample.json"), sample(scale)).unwrap();
        fs::write(dir.join("benchmark.json"), json!({ "full_id": bench }).to_string()).unwrap();
    };
    for (bench, scale) in [("group/slower", 1.3), ("group/same", 1.01), ("group/faster", 0.5)] {
        save(bench, "main", 1.0);
        save(bench, "new", scale);
    }
    let gate = || desk.simq(&["gate", "--criterion", "criterion", "--criterion-baseline", "main"]);
    let said = gate();
    assert_eq!(said.code, Some(3), "{said:?}");
    for line in ["worse           group/slower", "better          group/faster", "same            group/same"] {
        assert!(said.out.contains(line), "{line}: {said:?}");
    }
    save("group/new", "new", 1.0);
    let said = gate();
    assert!(said.out.contains("missing         group/new"), "{said:?}");
    fs::remove_dir_all(desk.path("criterion/group/new")).unwrap();
    save("group/slower", "new", 1.05);
    assert_eq!(gate().code, Some(0));
    let said = desk.simq(&["gate", "--criterion", "criterion", "--criterion-baseline", "nine"]);
    assert_eq!((said.code, said.err.contains("has a baseline `nine`")), (Some(2), true), "{said:?}");
    fs::write(desk.path("criterion/group/same/new/sample.json"), "{").unwrap();
    let said = gate();
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("it is no sample of criterion's"), "{said:?}");
}
