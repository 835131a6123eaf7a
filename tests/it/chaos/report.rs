//! What a report says of chaos is what the run's record has of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use simq::metrics::{Cause, costs, repeats};
use simq::report::{self, Comparison, Conditions, Run};

use super::{busy, entry, survives};
use crate::cluster;

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_blow_and_each_repeat_is_a_row_and_the_verdict_says_what_they_cost() {
    let kill = entry("800ms", "kill-workers", "share = 0.5\nlasts = '100ms'");
    let scenario = busy(&(kill + &entry("1s", "cut-connections", "")));
    let outcome = survives(&scenario).await;
    let (costs, repeats) = (costs(&outcome.record), repeats(&outcome.record));
    let run =
        Run { policy: "steady".into(), repetition: 1, seed: 1, record: outcome.record, summary: outcome.summary, partial: false };
    let comparison =
        Comparison { scenario, runs: vec![run], conditions: Conditions::default(), warnings: vec![], partial: false };
    let home = tempfile::tempdir().unwrap();
    let written = report::write(&comparison, &home.path().join("chaos"), "").unwrap();
    let blows = rows(&written.dir.join("chaos.csv"));
    assert_eq!(blows.iter().map(|row| row["what"].as_str()).collect::<Vec<_>>(), ["kill-workers", "cut-connections"]);
    assert_eq!(blows[0]["lost_leases"], costs[0].lost_leases.to_string());
    assert_eq!(blows[1]["store_failures"], costs[1].store_failures.to_string());
    let again = rows(&written.dir.join("repeats.csv"));
    assert_eq!(again.len(), repeats.len());
    assert!(again.iter().any(|row| row["cause"] == "killed" && row["blow"] == "kill-workers"), "{again:?}");
    let summary = rows(&written.dir.join("summary.csv"));
    assert_eq!(summary[0]["repeated_calls"], repeats.len().to_string());
    let document = report::summary_json(&comparison, "");
    let killed = repeats.iter().filter(|repeat| repeat.cause == Cause::Killed).count();
    assert_eq!(document["runs"][0]["chaos"]["repeated_calls_by_cause"]["killed"], killed);
    assert_eq!(document["scenario"]["chaos"][0]["what"], "kill-workers");
    let verdict = report::verdict(&comparison).join("\n");
    let said = format!(" hit 2 workers and cost {} leases, {} repeated calls", costs[0].lost_leases, costs[0].repeats);
    assert!(verdict.contains("Chaos under `steady`: kill-workers at ") && verdict.contains(&said), "{verdict}");
    assert!(report::table(&comparison, false, 200).contains("repeated"));
}

#[tokio::test]
async fn a_scenario_that_restarts_a_database_of_the_users_is_bad_usage() {
    let options = cluster::database().await;
    let socket = options.get_socket().unwrap().display().to_string().replace('/', "%2F");
    let url =
        format!("postgres://{}@{socket}:{}/{}", options.get_username(), options.get_port(), options.get_database().unwrap());
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/chaos.toml");
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_simq"))
        .args(["run", scenario, "--database-url", &url])
        .current_dir(home.path())
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("not simq's own: run it without --database-url"), "{said}");
}
