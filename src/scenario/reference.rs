//! The reference is tested, so that it can't say what isn't so.

use std::io;

use proptest::prelude::*;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::{Scenario, parse, schema};

const REFERENCE: &str = include_str!("reference.toml");

fn scenario(text: &str) -> Scenario {
    let trace = |name: &str| match name {
        "arrivals.csv" => Ok("at\n0.5\n1.5s\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let mut scenario = parse(text, &trace).unwrap_or_else(|error| panic!("{error}"));
    // Where they stand is no part of what they say.
    scenario.assertions.iter_mut().for_each(|assertion| assertion.line = 0);
    scenario
}

#[test]
fn what_is_called_a_default_holds_without_its_line() {
    let is_default =
        |line: &&str| line.split_once('#').is_some_and(|(_, comment)| comment.trim_end_matches(')').ends_with("default"));
    let without: Vec<&str> = REFERENCE.lines().filter(|line| !is_default(line)).collect();
    assert!(without.len() + 20 < REFERENCE.lines().count(), "some twenty lines are called default");
    assert_eq!(scenario(&without.join("\n")), scenario(REFERENCE));
}

#[test]
fn every_key_of_the_schema_is_in_the_reference_with_its_default() {
    let reference: Table = REFERENCE.parse().expect("the reference is TOML");
    let schema: Json = serde_json::from_str(&schema()).expect("the schema is JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let downstream = &reference["downstream"];
    let policies = reference["policy"].as_table().expect("policies").values().cloned().collect();
    for (definition, tables) in [
        ("Jobs", list(&reference["jobs"])),
        ("Workers", vec![reference["workers"].clone()]),
        ("Database", vec![reference["database"].clone()]),
        ("Downstream", vec![downstream.clone()]),
        ("Collapse", vec![downstream["collapse"].clone()]),
        ("Users", vec![downstream["users"].clone()]),
        ("Outage", list(&downstream["outage"])),
        ("Chaos", list(&reference["chaos"])),
        ("Policy", policies),
        ("Assert", list(&reference["assert"])),
    ] {
        hold(definition, &schema["definitions"][definition]["properties"], &tables);
    }
    hold("File", &schema["properties"], &[Value::Table(reference)]);
    let shapes = schema["definitions"]["Latency"]["properties"].as_object().expect("latency has properties");
    assert!(shapes.keys().all(|key| REFERENCE.contains(&format!("{key} = "))), "every key of a latency is in the comment");
}

fn hold(definition: &str, properties: &Json, tables: &[Value]) {
    let properties = properties.as_object().unwrap_or_else(|| panic!("the schema has no {definition}"));
    for (key, property) in properties {
        let values: Vec<Json> = tables
            .iter()
            .filter_map(|table| table.get(key))
            .map(|value| serde_json::to_value(value).expect("TOML fits into JSON"))
            .collect();
        assert!(!values.is_empty(), "{definition} has no `{key}` in the reference");
        if let Some(default) = property.get("default") {
            assert!(values.contains(default), "`{key}` of {definition} is {default} by default, not {values:?}");
        }
    }
}

proptest! {
    /// Whatever happens to one line of the reference, it is read or refused at places that exist.
    #[test]
    fn a_spoilt_line_is_refused_in_its_place(line in 0..400_usize, value in prop_oneof![
        Just(None), Just(Some("")), Just(Some("0")), Just(Some("-1")), Just(Some("nan")), Just(Some("1e300")), Just(Some("true")),
        Just(Some("[]")), Just(Some("{}")), Just(Some("\"0s\"")), Just(Some("\"99y\"")), Just(Some("\"\u{e4}\"")),
        Just(Some("99999999999999999999")), Just(Some("1979-05-27")),
    ]) {
        let mut lines: Vec<String> = REFERENCE.lines().map(str::to_owned).collect();
        let line = line % lines.len();
        match (value, lines[line].split_once(" = ").map(|(key, _)| key.to_owned())) {
            (Some(value), Some(key)) => lines[line] = format!("{key} = {value}"),
            _ => { lines.remove(line); }
        }
        let text = lines.join("\n");
        if let Err(error) = parse(&text, &|_| Ok("at\n1s\n".to_owned())) {
            prop_assert!(!error.problems().is_empty());
            for problem in error.problems() {
                let places = problem.labels.iter().map(|(place, _)| place).chain([&problem.span]);
                prop_assert!(places.into_iter().all(|place| text.get(place.clone()).is_some()), "{problem:?}");
            }
        }
    }
}
