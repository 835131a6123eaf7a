//! What a report holds, that it is there whole or not at all, and that its words agree with its figures.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use simq::call::Outcome;
use simq::downstream::{Mode, Outage};
use simq::job::JobId;
use simq::metrics::{Aftermath, Counts, Fate, Limit, METRICS, Peak, RunRecord, Service, Summary, UserCall};
use simq::report::{self, Comparison, Error};
use simq::scenario::{NamedPolicy, Scenario};
use simq::time::{Instant, Window};
use simq::workload::Arrival;

use super::herd::{self, ms};

/// A herd small enough for many tests, with an outage that bites.
fn small() -> Scenario {
    let mut scenario = herd::scenario();
    scenario.jobs = vec![herd::group(60, Arrival::AtOnce), herd::group(40, Arrival::Constant { rate: 50.0 })];
    scenario.downstream.servers = 4;
    scenario.downstream.outages[0].window = Window::starting(ms(300), ms(1_000));
    scenario
}

/// One repetition of it, in which `none` loses jobs and the others lose none.
fn comparison() -> Comparison {
    let mut scenario = small();
    for named in &mut scenario.policies {
        named.policy.max_retries = Some(if named.name == "none" { 4 } else { 12 });
    }
    herd::compare(scenario)
}

/// Writes it into a fresh folder.
fn written(comparison: &Comparison) -> (tempfile::TempDir, std::path::PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("outage");
    report::write(comparison, &dir, "name = \"outage\"\n").unwrap();
    (home, dir)
}

/// The rows of a table, by column.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_summary_table_has_its_columns_in_order_and_empty_cells_for_what_is_not() {
    let comparison = comparison();
    let (_home, dir) = written(&comparison);
    let text = fs::read_to_string(dir.join("summary.csv")).unwrap();
    let first = "policy,repetition,seed,jobs,completed,discarded,unfinished,requests,amplification,wasted_requests,\
                 stampede_peak,first_peak,retry_peak,recovery_peak,completion_p50_s,completion_p90_s,completion_p99_s,\
                 completion_p100_s,makespan_s,time_to_recover_s,permanent,exhausted,lost,malformed_requests,peak_over_mean,latency_ms_p50";
    assert!(text.starts_with(first), "{}", text.lines().next().unwrap());
    assert!(text.lines().next().unwrap().ends_with("arrivals_at_downstream,limit,partial"));
    let rows = rows(&dir.join("summary.csv"));
    assert_eq!(rows.len(), 3);
    for (row, run) in rows.iter().zip(&comparison.runs) {
        assert_eq!(row["policy"], run.policy);
        assert_eq!(row["requests"], run.summary.requests.to_string());
        assert_eq!(row["seed"], "42");
        assert_eq!(row["partial"], "false");
    }
    let none = &rows[0];
    assert!(none["lost"] != "0", "{none:?}");
    assert_eq!((&*none["completion_p100_s"], &*none["time_to_recover_s"]), ("", ""), "what never came is empty, not zero");
    assert!(rows[2]["completion_p100_s"].parse::<f64>().unwrap() > 1.0);
}

#[test]
fn the_time_series_adds_up_to_the_run() {
    let comparison = comparison();
    let (_home, dir) = written(&comparison);
    let rows = rows(&dir.join("timeseries.csv"));
    for run in &comparison.runs {
        let of_run: Vec<_> = rows.iter().filter(|row| row["policy"] == run.policy).collect();
        let sum = |column: &str| of_run.iter().map(|row| row[column].parse::<u64>().unwrap()).sum::<u64>();
        assert_eq!(sum("requests"), run.summary.requests);
        assert_eq!(sum("first_attempts") + sum("retries"), run.summary.requests);
        assert_eq!(sum("completed"), run.summary.counts.completed);
        assert_eq!(sum("discarded"), run.summary.counts.discarded());
        assert_eq!(sum("failed"), run.summary.requests - run.summary.counts.completed);
        assert_eq!(of_run[0]["backlog"], "61", "60 at once and the first of those that come evenly");
        if run.policy == "none" {
            continue; // It gave up and was done before the outage was.
        }
        let down = of_run.iter().filter(|row| row["in_outage"] == "unavailable").count() as f64;
        let width: f64 = of_run[0]["bin_s"].parse().unwrap();
        assert!((down * width - 1.0).abs() < 2.0 * width, "{down} bins of {width} s are in an outage of 1 s");
    }
}

#[test]
fn the_logs_hold_every_attempt_and_every_job_and_leave_open_ends_empty() {
    let mut comparison = comparison();
    let last = comparison.runs[0].record.attempts.last_mut().unwrap();
    (last.answered, last.settled, last.outcome, last.fate) = (None, None, None, Fate::Open);
    let (_home, dir) = written(&comparison);
    let attempts = rows(&dir.join("attempts.csv"));
    assert_eq!(attempts.len(), comparison.runs.iter().map(|run| run.record.attempts.len()).sum::<usize>());
    let open = attempts.iter().rfind(|row| row["policy"] == "none").unwrap();
    for column in ["answered_s", "settled_s", "outcome", "delay_s"] {
        assert_eq!(open[column], "", "{column}");
    }
    assert_eq!(open["fate"], "open");
    let retried = attempts.iter().find(|row| row["policy"] == "exponential" && row["fate"] == "retried").unwrap();
    assert_eq!((&*retried["delay_s"], &*retried["outcome"], &*retried["attempt"]), ("0.500000000", "status-503", "1"));
    let jobs = rows(&dir.join("jobs.csv"));
    assert_eq!(jobs.len(), 300);
    assert!(jobs.iter().any(|row| row["state"] == "discarded" && row["why"] == "exhausted"));
    assert!(jobs.iter().all(|row| !row["finished_s"].is_empty()));
}

#[test]
fn the_document_speaks_of_scenario_and_figures_in_readable_units() {
    let (_home, dir) = written(&comparison());
    let document: Value = serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap();
    assert_eq!(document["schema_version"], 1);
    assert_eq!(document["seed"], 42);
    assert_eq!(document["scenario"]["stampede_window"], "100ms");
    assert_eq!(document["scenario"]["downstream"]["outages"][0]["window"]["from"], "300ms");
    assert_eq!(document["scenario_source"], "name = \"outage\"\n");
    assert_eq!(document["conditions"]["postgres.synchronous_commit"], "on");
    let none = &document["runs"][0];
    assert_eq!((&none["policy"], &none["repetition"]), (&Value::from("none"), &Value::from(1)));
    assert!(none["summary"]["completion_p100_s"].is_null());
    assert!(none["summary"]["lost"].as_u64().unwrap() > 0);
    assert_eq!(none["summary"]["limit"], "policy");
    for metric in METRICS {
        assert!(none["summary"].get(metric.name).is_some(), "{}", metric.name);
    }
}

#[test]
fn a_report_replaces_an_older_one_and_nothing_else() {
    let comparison = comparison();
    let (home, dir) = written(&comparison);
    fs::write(dir.join("old.png"), "from an older simq").unwrap();
    let again = report::write(&comparison, &dir, "").unwrap();
    assert!(!dir.join("old.png").exists());
    let mut files = again.files.clone();
    files.sort();
    assert_eq!(names(&dir), files);
    assert_eq!(names(home.path()), ["outage"], "no draft and no old report stays behind");

    fs::write(dir.join("thesis.tex"), "mine").unwrap();
    let error = report::write(&comparison, &dir, "").unwrap_err();
    assert!(matches!(error, Error::Alien { .. }) && error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(fs::read_to_string(dir.join("thesis.tex")).unwrap(), "mine");
    assert_eq!(names(home.path()), ["outage"]);
}

#[test]
fn where_no_report_can_be_nothing_is_left() {
    let comparison = comparison();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "mine").unwrap();
    assert!(matches!(report::write(&comparison, &file, "").unwrap_err(), Error::NotAFolder(_)));
    assert!(matches!(report::try_out(&file), Err(Error::NotAFolder(_))));
    assert!(matches!(report::write(&comparison, &file.join("below"), "").unwrap_err(), Error::Write { .. }));
    assert_eq!(names(home.path()), ["file"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    report::try_out(&home.path().join("new")).expect("a report may be made where nothing is");
}

#[cfg(unix)]
#[test]
fn a_parent_that_may_not_be_written_is_an_error_that_names_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let root = fs::write(home.path().join("probe"), "").is_ok();
    let written = report::write(&comparison(), &home.path().join("outage"), "");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if !root {
        assert!(written.unwrap_err().to_string().contains("outage"));
        assert!(names(home.path()).is_empty());
    }
}

#[cfg(feature = "plot")]
#[test]
fn charts_have_their_size_and_are_the_same_bytes_each_time() {
    let comparison = comparison();
    let (_first_home, first) = written(&comparison);
    let (_second_home, second) = written(&comparison);
    let sizes = [("requests", 820), ("peaks", 820), ("completion", 820), ("attempts", 820), ("heat", 372)];
    for (slug, height) in sizes {
        let file = format!("{slug}.png");
        let png = fs::read(first.join(&file)).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n", "{file}");
        let field = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((field(16), field(20)), (2400, 2 * height), "{file} is drawn at 2x");
        assert!(png == fs::read(second.join(&file)).unwrap(), "{file} differs from one drawing to the next");
        let pixels = picture_bytes(&png);
        assert!(pixels > 1_000, "{file} holds {pixels} bytes of picture");
    }
}

/// The real thing, for the eye: look at target/tmp/reports/outage after a change to a chart.
#[test]
fn a_realistic_outage_is_drawn_where_it_can_be_looked_at() {
    let mut scenario = herd::scenario();
    scenario.jobs.iter_mut().for_each(|group| group.max_retries = 12);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports/outage");
    let comparison = herd::compare(scenario);
    report::write(&comparison, &dir, "").unwrap();
    let peak = |i: usize| comparison.runs[i].summary.recovery_peak.unwrap().calls;
    assert!(peak(1) > 5 * peak(2), "jitter flattens the recovery: {} against {}", peak(1), peak(2));
}

/// The bytes of compressed picture, read chunk by chunk to the end: a PNG that is cut off has no IEND.
#[cfg(feature = "plot")]
fn picture_bytes(png: &[u8]) -> usize {
    let (mut at, mut bytes) = (8, 0);
    loop {
        let length = u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        match &png[at + 4..at + 8] {
            b"IEND" => return bytes,
            b"IDAT" => bytes += length,
            _ => {}
        }
        at += length + 12;
    }
}

/// Odd comparisons that have to give a report, a table and a verdict all the same.
fn oddities() -> Vec<(&'static str, Comparison)> {
    let mut lone = small();
    lone.policies.truncate(1);
    lone.jobs = vec![herd::group(1, Arrival::AtOnce)];
    lone.downstream.outages.clear();
    let mut crowd = small();
    crowd.policies = (0..12)
        .map(|i| NamedPolicy { name: format!("a-rather-long-policy-name-{i}"), ..herd::policies()[i % 3].clone() })
        .collect();
    crowd.repetitions = 2;
    let mut cut = herd::compare(small());
    cut.partial = true;
    cut.runs.truncate(2);
    cut.runs[1].partial = true;
    cut.runs[1].record.attempts.truncate(10);
    cut.runs[0].summary.limit = Limit::Harness;
    let mut unstarted = herd::compare(small());
    for run in &mut unstarted.runs {
        run.record = RunRecord { jobs: run.record.jobs.clone(), ..RunRecord::default() };
        for job in &mut run.record.jobs {
            (job.state, job.finished) = (simq::job::State::Available, None);
        }
        run.summary = herd::summarise(&unstarted.scenario, &run.record);
        run.summary.amplification = f64::NAN;
    }
    let mut nothing = herd::compare(small());
    nothing.runs.clear();
    let mut stormy = small();
    let brownout = Mode::Brownout { error_rate: 0.5, slowdown: 3.0, servers: None };
    stormy.downstream.outages = (0..30).map(|i| Outage::plain(Window::starting(ms(i * 90), ms(60)), brownout)).collect();
    vec![
        ("one job", herd::compare(lone)),
        ("twelve policies", herd::compare(crowd)),
        ("interrupted and overloaded", cut),
        ("no attempt", unstarted),
        ("no run", nothing),
        ("thirty outages", herd::compare(stormy)),
    ]
}

#[test]
fn odd_comparisons_give_a_report_a_table_and_a_verdict() {
    for (what, comparison) in oddities() {
        let (_home, dir) = written(&comparison);
        assert!(names(&dir).len() >= 5, "{what}");
        assert_eq!(rows(&dir.join("summary.csv")).len(), comparison.runs.len(), "{what}");
        for width in [0, 20, 80, 500] {
            let text = report::table(&comparison, false, width);
            let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
            assert!(width < 80 || widths.iter().all(|w| *w <= width), "{what} at {width}:\n{text}");
        }
        assert!(!report::verdict(&comparison).is_empty(), "{what}");
    }
}

#[test]
fn the_table_puts_losses_first_and_marks_the_best_of_those_that_lost_nothing() {
    let mut scenario = small();
    scenario.repetitions = 3;
    for named in &mut scenario.policies {
        named.policy.max_retries = Some(if named.name == "none" { 4 } else { 12 });
    }
    let repeated = herd::compare(scenario);
    let tables =
        [report::table(&comparison(), false, 150), report::table(&repeated, false, 200), report::table(&repeated, true, 80)];
    insta::assert_snapshot!("table", tables.join("\n").replace('\x1b', "␛"));
}

#[test]
fn the_verdict_says_what_the_numbers_say() {
    let mut lossless = comparison();
    lossless.runs.remove(0);
    let mut limited = comparison();
    limited.runs[0].summary.limit = Limit::Database;
    limited.runs[0].summary.limit_evidence = "slots waited 71 % of the time for claims.".into();
    let mut told = vec![("one loses", report::verdict(&comparison())), ("none loses", report::verdict(&lossless))];
    told.push(("the database was the limit", report::verdict(&limited)));
    told.extend(oddities().into_iter().map(|(what, comparison)| (what, report::verdict(&comparison))));
    let text: Vec<String> = told.into_iter().map(|(what, said)| format!("{what}:\n  {}\n", said.join("\n  "))).collect();
    insta::assert_snapshot!("verdict", text.join("\n"));
}

/// A comparison in which the first policy keeps the service down, and users pay for it.
fn stuck() -> Comparison {
    let mut comparison = comparison();
    for (i, run) in comparison.runs.iter_mut().enumerate() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let stuck = i == 0;
        run.record.users = (0..200)
            .map(|n| UserCall {
                number: JobId(1 << 62 | n),
                planned: at(n * 10),
                answered: Some(at(n * 10 + 20)),
                outcome: Some(if stuck && n > 30 { Outcome::TimedOut } else { Outcome::Ok }),
            })
            .collect();
        let work = |ms| Some(Window { from: at(ms), until: at(ms + 30) });
        run.record.services = (0..200)
            .map(|n| Service {
                job: JobId(1 << 62 | n),
                attempt: 1,
                arrived: at(n * 10),
                work: work(n * 10),
                outcome: Some(Outcome::Ok),
            })
            .collect();
        run.summary = herd::summarise(&comparison.scenario, &run.record);
        run.summary.aftermath = Some(Aftermath {
            outage_ended: at(9_000),
            down_for: if stuck { ms(20_000) } else { ms(1_200) },
            recovered: !stuck,
            load_ended: false,
            metastable: stuck,
            first_calls: 100.0,
            calls: 350.0,
            wasted_work: Some(if stuck { 0.97 } else { 0.4 }),
        });
    }
    comparison
}

#[test]
fn a_service_that_retries_keep_down_is_said_and_drawn() {
    let comparison = stuck();
    let said = report::verdict(&comparison);
    for sentence in [
        "The outage ended at 9.0 s; under `none` the downstream never recovered by itself in the 20.0 s that followed: 97 % of its \
         work was for callers that had already given up.",
        "It was well again under `exponential` after 1.2 s and under `full-jitter` after 1.2 s.",
        "Of the ordinary users' calls after the outage 100 % under `none`, 0 % under `exponential` and 0 % under `full-jitter` failed \
         (0 % before it).",
    ] {
        assert!(said.iter().any(|known| known == sentence), "{sentence}\n{said:#?}");
    }
    assert!(report::table(&comparison, false, 200).contains("users failed"));
    let (_home, dir) = written(&comparison);
    assert!(cfg!(not(feature = "plot")) || names(&dir).ends_with(&["users.png".to_owned(), "work.png".to_owned()]));
    let rows = rows(&dir.join("summary.csv"));
    assert_eq!((&*rows[0]["wasted_work"], &*rows[0]["user_failed_before"], &*rows[1]["user_failed"]), ("0.845", "0", "0"));
    let mut late = stuck();
    let after = late.runs[0].summary.aftermath.as_mut().unwrap();
    after.recovered = true;
    assert!(
        report::verdict(&late)
            .iter()
            .any(|said| said.contains("under `none` the downstream took 20.0 s more to recover by itself"))
    );
}

fn any_summary() -> impl Strategy<Value = Summary> {
    let secs = || proptest::option::of((1..50_u64).prop_map(Duration::from_secs));
    let some_or_none = prop_oneof![Just(0_u64), 1..30_u64];
    (some_or_none.clone(), some_or_none, 0..9_u64, 100..5_000_u64, proptest::option::of(0..500_u64), secs()).prop_map(
        |(exhausted, unfinished, permanent, requests, recovery, makespan)| {
            let mut summary = herd::summarise(&small(), &RunRecord::default());
            let completed = 100 - exhausted - unfinished - permanent;
            summary.counts = Counts { jobs: 100, completed, permanent, exhausted, unfinished, malformed: 0 };
            summary.requests = requests;
            summary.amplification = requests as f64 / 100.0;
            summary.recovery_peak = recovery.map(|calls| Peak { calls, ..Peak::default() });
            summary.makespan = makespan;
            summary
        },
    )
}

proptest! {
    #[test]
    fn a_policy_that_loses_jobs_is_never_praised(summaries in proptest::collection::vec(any_summary(), 1..6)) {
        let mut scenario = small();
        let name = |i: usize| format!("p{i}");
        scenario.policies =
            (0..summaries.len()).map(|i| NamedPolicy { name: name(i), ..herd::policies()[0].clone() }).collect();
        let runs = summaries.iter().enumerate().map(|(i, summary)| herd::figures(&name(i), summary.clone())).collect();
        let comparison =
            Comparison { scenario, runs, conditions: Default::default(), warnings: vec![], partial: false };
        let said = report::verdict(&comparison);
        for (i, summary) in summaries.iter().enumerate() {
            let about: Vec<&String> = said.iter().filter(|sentence| sentence.contains(&format!("`p{i}`"))).collect();
            if summary.counts.lost() > 0 {
                prop_assert_eq!(about.len(), 1, "it is named once, as losing: {:?}", said);
                prop_assert!(about[0].contains(&format!("`p{i}` lost {}", summary.counts.lost())), "{:?}", said);
            }
        }
        let table = report::table(&comparison, true, 400);
        for (line, summary) in table.lines().skip(1).zip(&summaries) {
            prop_assert_eq!(line.contains("\x1b[1;31m"), summary.counts.lost() > 0, "{}", line);
            prop_assert!(summary.counts.lost() == 0 || !line.contains("\x1b[1m"), "{}", line);
        }
    }
}
