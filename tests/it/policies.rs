//! `simq policies`, driven as a person drives it: the built binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use simq::policy::{Policy, preset};
use simq::scenario::NamedPolicy;

use super::herd;

fn simq(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_simq")).args(args).current_dir(root()).output().unwrap()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn text(args: &[&str]) -> String {
    let output = simq(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?} said something on stderr");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&text(args)).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = simq(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_list_has_every_group_and_says_what_to_do_next() {
    let list = text(&["policies"]);
    for line in ["Job queues", "Brokers and workflow engines", "Clients of services", "Retry libraries and articles"] {
        assert!(list.lines().any(|found| found == line), "{line}");
    }
    let sidekiq = list.lines().find(|line| line.starts_with("  sidekiq ")).unwrap();
    assert!(sidekiq.contains("25") && sidekiq.contains("20.4 d"), "{sidekiq}");
    assert!(list.contains("`simq policies show NAME`"));
    let all = json(&["policies", "--json"]);
    assert!(all.as_array().unwrap().len() >= 120);
}

#[test]
fn a_policy_is_shown_with_its_source_and_a_picture() {
    let shown = text(&["policies", "show", "sidekiq", "--attempts", "3"]);
    assert!(shown.starts_with("sidekiq: Sidekiq v8.1.7, lib/sidekiq/job_retry.rb\n"), "{shown}");
    assert!(shown.contains("[15 s, 24 s]") && shown.contains("[31 s, 60 s]") && !shown.contains("[96 s"), "{shown}");
    assert!(shown.contains('●'), "{shown}");
}

#[test]
fn json_has_the_cells_in_seconds() {
    let shown = json(&["policies", "show", "river", "--attempts", "10", "--json"]);
    assert_eq!(
        (&shown["name"], &shown["retries"], &shown["source"]),
        (&"river".into(), &24.into(), &"internal/retrypolicy/default.go".into())
    );
    let cells = shown["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 10);
    let first = &cells[1];
    assert_eq!(
        (&first["n"], &first["low_open"], &first["high_open"], &first["grain"]),
        (&2.into(), &false.into(), &true.into(), &0.0.into())
    );
    for (key, told) in [("low", 14.4), ("high", 17.6), ("mean", 16.0)] {
        assert!((first[key].as_f64().unwrap() - told).abs() < 1e-6, "{first}");
    }
    let endless = json(&["policies", "show", "temporal.activity", "--json"]);
    assert_eq!(endless["retries"], Value::Null, "no limit");
    assert_eq!(json(&["policies", "show", "celery.retry_backoff=True", "--json"])["cells"][0]["grain"], 1.0);
}

#[test]
fn policies_stand_beside_each_other() {
    let compared = text(&["policies", "compare", "sidekiq", "oban", "river"]);
    let first = compared.lines().next().unwrap();
    assert_eq!(first.split_whitespace().collect::<Vec<_>>(), ["sidekiq", "oban", "river"]);
    let retry = compared.lines().find(|line| line.starts_with("retry 1 ")).unwrap();
    assert!(retry.contains("[15 s, 24 s]") && retry.contains("[17 s, 18 s]") && retry.contains("[900 ms, 1.1 s)"), "{retry}");
    assert_eq!(json(&["policies", "compare", "sidekiq", "oban", "--json"]).as_array().unwrap().len(), 2);
}

#[test]
fn an_unknown_name_meets_the_one_that_was_meant() {
    assert_eq!(refused(&["policies", "show", "sidekik"]), "error: there is no policy `sidekik`: did you mean `sidekiq`?\n");
    assert_eq!(
        refused(&["policies", "compare", "oban", "elephants"]),
        "error: there is no policy `elephants`: `simq policies` lists all\n"
    );
    assert!(refused(&["policies", "show", "river", "--attempts", "0"]).contains("--attempts"));
    assert!(refused(&["policies", "show"]).contains("NAME"));
    assert!(refused(&["policies", "compare"]).contains("NAME"));
}

#[test]
fn a_scenarios_policies_are_shown_as_well() {
    let shown = json(&["policies", "show", "jitter", "--scenario", "scenarios/outage.toml", "--json"]);
    assert_eq!((&shown["system"], &shown["cells"][0]["high"]), (&"outage".into(), &1.0.into()));
    let list = text(&["policies", "--scenario", "scenarios/outage.toml"]);
    assert!(list.contains("\n  exponential ") && !list.contains("sidekiq"), "{list}");
    assert!(
        json(&["policies", "show", "river", "--scenario", "scenarios/outage.toml", "--json"])["retries"] == 24,
        "a preset, too"
    );
}

#[test]
fn a_picture_is_written_as_png() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("policies.png");
    text(&["policies", "compare", "sidekiq", "aws.standard-2.0", "--png", path.to_str().unwrap()]);
    assert!(fs::read(&path).unwrap().starts_with(b"\x89PNG"));
    let nowhere = simq(&["policies", "show", "sidekiq", "--png", "/nowhere/at/all.png"]);
    assert_eq!(nowhere.status.code(), Some(5), "{}", String::from_utf8_lossy(&nowhere.stderr));
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    for args in [&["policies"][..], &["policies", "show", "sidekiq"], &["policies", "compare", "oban", "river"]] {
        let mut child =
            Command::new(env!("CARGO_BIN_EXE_simq")).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// T-06, T-21, T-22, T-23: jitter, cap and scale that are written in a file are there in what comes of it.
#[test]
fn t06_what_a_file_says_of_chance_and_caps_is_what_a_run_gets() {
    let dir = tempfile::tempdir().unwrap();
    let head = "name = 'x'\nhorizon = '60s'\ntime_scale = 0.001\n[[jobs]]\ntype = 'email'\ncount = 5\n[downstream]\nservers = 1\n\
                latency = { kind = 'constant', value = '1ms' }\n";
    for (keys, low, high) in [
        ("kind = 'exponential'\nbase = '4s'\njitter = 'full'", 0.0, 4.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'equal'", 2.0, 4.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'proportional'\njitter_share = 0.25", 3.0, 5.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'upward'\njitter_share = 0.5", 4.0, 6.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'downward'\njitter_share = 0.5", 2.0, 4.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'between'\njitter_low = 0.5\njitter_high = 2", 2.0, 8.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'additive'\njitter_spread = '3s'", 4.0, 7.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'growing'\njitter_growth = '2s'", 4.0, 6.0),
        ("kind = 'exponential'\nbase = '4s'\njitter = 'decorrelated'", 4.0, 12.0),
        ("kind = 'exponential'\nbase = '1s'\njitter = 'timeline'", 0.0, 1.377_183),
        ("kind = 'expression'\nbase = '4s'\ncap = '6s'\ndelay = 'min(cap, base * 2^n) * uniform(0.5, 1)'", 3.0, 6.0),
        (
            "kind = 'exponential'\nbase = '4s'\ncap = '5s'\njitter = 'between'\njitter_low = 1\njitter_high = 2\norder = 'cap-last'",
            4.0,
            5.0,
        ),
        ("preset = 'river'\nbase = '2s'", 1.8, 2.2),
        ("preset = 'sidekiq'\ntime_scale = 1\nplus = '1s'", 1000.0, 10_000.0),
    ] {
        let path = dir.path().join("x.toml");
        fs::write(&path, format!("{head}[policy.a]\n{keys}\n")).unwrap();
        let shown = json(&["policies", "show", "a", "--scenario", path.to_str().unwrap(), "--json"]);
        let cell = &shown["cells"][0];
        let near = |key: &str, told: f64| (cell[key].as_f64().unwrap() * 1000.0 - told).abs() < 1e-3;
        assert!(near("low", low) && near("high", high), "{keys}: {cell}");
    }
    assert!(Path::new(env!("CARGO_BIN_EXE_simq")).exists());
}

/// T-08: a herd that failed together comes back together without jitter, and spread out with it.
#[test]
fn t08_a_synchronised_herd_peaks_without_jitter() {
    let mut scenario = herd::scenario();
    let policy = |name: &str| {
        let policy = Policy { max_retries: Some(30), ..preset::find(name).unwrap().policy().scaled(0.01) };
        NamedPolicy { name: name.into(), policy }
    };
    scenario.policies = vec![policy("delayed_job"), policy("river"), policy("dramatiq")];
    let comparison = herd::compare(scenario);
    let peaks: Vec<f64> =
        comparison.runs.iter().map(|run| run.summary.recovery_peak.map_or(0.0, |peak| peak.calls as f64)).collect();
    assert!(peaks[0] > 1.5 * peaks[2] && peaks[0] >= peaks[1], "delayed_job, river and dramatiq: {peaks:?}");
    assert!(comparison.runs.iter().all(|run| run.summary.counts.exhausted == 0), "nothing is lost");
}
