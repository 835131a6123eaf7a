//! What a report says of several repetitions: medians with their intervals, shares, and no ranking that another seed would turn round.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use serde_json::Value;
use simq::metrics::{Aftermath, METRICS, Metric, OCCURRENCES, RunRecord, Summary};
use simq::report::{self, Comparison, Run};
use simq::scenario::{NamedPolicy, Scenario};
use simq::time::Instant;
use simq::workload::Arrival;

use crate::herd::{self, ms};

/// A small herd, so many times.
fn repeated(repetitions: u32) -> Comparison {
    let mut scenario = herd::scenario();
    scenario.jobs = vec![herd::group(40, Arrival::AtOnce)];
    scenario.downstream.error_rate = 0.2;
    scenario.downstream.outages.clear();
    scenario.repetitions = repetitions;
    herd::compare(scenario)
}

fn rows(comparison: &Comparison) -> Option<Vec<BTreeMap<String, String>>> {
    let home = tempfile::tempdir().unwrap();
    report::write(comparison, &home.path().join("out"), "").unwrap();
    let drawn = home.path().join("out/seeds.png").exists();
    assert_eq!(drawn, cfg!(feature = "plot") && comparison.runs.len() > 2 * comparison.scenario.policies.len());
    let text = fs::read_to_string(home.path().join("out/seeds.csv")).ok()?;
    Some(csv::Reader::from_reader(text.as_bytes()).deserialize().map(Result::unwrap).collect())
}

/// The row of a policy and figure.
fn row<'a>(rows: &'a [BTreeMap<String, String>], policy: &str, metric: &str) -> &'a BTreeMap<String, String> {
    rows.iter().find(|row| row["policy"] == policy && row["metric"] == metric).unwrap()
}

/// Comparisons made of figures: per policy a list of summaries, one per seed.
fn figures(policies: &[Vec<Summary>]) -> Comparison {
    let mut scenario: Scenario = herd::scenario();
    let name = |i: usize| format!("p{i}");
    scenario.policies = (0..policies.len()).map(|i| NamedPolicy { name: name(i), ..herd::policies()[0].clone() }).collect();
    scenario.repetitions = policies.iter().map(Vec::len).max().unwrap_or(0) as u32;
    let runs = policies.iter().enumerate().flat_map(|(i, summaries)| {
        let run = move |(repetition, summary): (u32, &Summary)| Run { repetition, ..herd::figures(&name(i), summary.clone()) };
        (1..).zip(summaries).map(run)
    });
    Comparison { runs: runs.collect(), scenario, conditions: Default::default(), warnings: vec![], partial: false }
}

/// A run that lost `lost` of 100 jobs and took so many seconds.
fn summary(lost: u64, makespan_ms: u64) -> Summary {
    let mut summary = herd::summarise(&herd::scenario(), &RunRecord::default());
    (summary.counts.jobs, summary.counts.completed, summary.counts.exhausted) = (100, 100 - lost, lost);
    summary.makespan = Some(ms(makespan_ms));
    summary
}

#[test]
fn one_repetition_has_nothing_to_say_of_seeds() {
    let comparison = repeated(1);
    assert_eq!(rows(&comparison), None);
    assert!(report::summary_json(&comparison, "").get("seeds").is_none());
    assert_eq!(report::table(&comparison, false, 200).lines().count(), 4, "a header and three policies");
}

#[test]
fn every_figure_has_its_median_and_interval_and_what_happens_its_share() {
    let comparison = repeated(7);
    let rows = rows(&comparison).unwrap();
    let told = OCCURRENCES.iter().filter(|one| one.happened(&comparison.runs[0].summary).is_some()).count();
    assert_eq!(told, 2, "without an outage nothing collapses");
    assert_eq!(rows.len(), 3 * (METRICS.len() + told));
    for named in &comparison.scenario.policies {
        for metric in METRICS {
            let runs = comparison.runs.iter().filter(|run| run.policy == named.name);
            let mut values: Vec<f64> = runs.filter_map(|run| Some(metric.value(&run.summary)?.as_f64())).collect();
            values.sort_by(f64::total_cmp);
            let row = row(&rows, &named.name, metric.name);
            assert_eq!((&*row["n"], &*row["missing"]), ("7", &*(7 - values.len()).to_string()), "{}", metric.name);
            if values.len() == 7 {
                // Of seven the interval goes from the first to the last: one less on both sides has 87.5 %.
                for (column, place) in
                    [("least", 0), ("median_low", 0), ("median", 3), ("median_high", 6), ("p95", 6), ("most", 6)]
                {
                    assert_eq!(row[column].parse::<f64>().unwrap(), values[place], "{}: {column}", metric.name);
                }
            }
            assert_eq!(row["share"], "");
        }
        let lost = row(&rows, &named.name, "lost_jobs");
        assert_eq!((&*lost["n"], &*lost["median"]), ("7", ""), "what is lost or not has no median");
    }
    let document = report::summary_json(&comparison, "");
    assert_eq!(document["seeds"].as_array().unwrap().len(), 3);
    let told = &document["seeds"][2];
    assert_eq!(told["policy"], "full-jitter");
    let makespan = row(&rows, "full-jitter", "makespan_s");
    assert_eq!(told["metrics"]["makespan_s"]["median_high"].to_string(), makespan["median_high"]);
    assert_eq!(told["shares"]["horizon_reached"]["n"], 7);
}

#[test]
fn two_repetitions_have_a_table_and_no_interval() {
    let rows = rows(&repeated(2)).unwrap();
    let makespan = row(&rows, "full-jitter", "makespan_s");
    assert_eq!((&*makespan["median_low"], &*makespan["median_high"]), ("", ""));
    assert!(!makespan["median"].is_empty() && !makespan["least"].is_empty());
}

#[test]
fn losses_and_collapses_are_shares_with_an_interval_and_a_mean_of_neither() {
    let collapsed = |collapses: bool| {
        let mut summary = summary(if collapses { 100 } else { 0 }, 5_000);
        summary.aftermath = Some(Aftermath {
            outage_ended: Instant::START,
            down_for: ms(if collapses { 20_000 } else { 0 }),
            recovered: !collapses,
            load_ended: false,
            metastable: collapses,
            first_calls: 10.0,
            calls: 90.0,
            wasted_work: Some(0.9),
        });
        summary
    };
    let comparison =
        figures(&[(0..100).map(|seed| collapsed(seed % 10 == 9)).collect(), (0..100).map(|_| collapsed(false)).collect()]);
    let rows = rows(&comparison).unwrap();
    for name in ["lost_jobs", "collapse", "metastable"] {
        let row = row(&rows, "p0", name);
        assert_eq!((&*row["hits"], &*row["share"]), ("10", "0.1"), "{name}");
        // Wilson's interval of 10 in 100.
        assert_eq!((&*row["share_low"], &*row["share_high"]), ("0.055229", "0.174366"), "{name}");
    }
    let said = report::verdict(&comparison).join("\n");
    assert!(said.contains("`p0` lost up to 100 of 100 jobs in 10 of 100 repetitions (10 %; 5.5 % to 17 %)"), "{said}");
    assert!(
        said.contains("under `p0`, in 10 of 100 repetitions (10 %; 5.5 % to 17 %), the downstream never recovered"),
        "{said}"
    );
    let table = report::table(&comparison, false, 250);
    assert!(table.contains("loses in") && table.contains("collapses in") && table.contains("10 % [5.5–17 %]"), "{table}");
}

#[test]
fn interrupted_repetitions_do_not_count() {
    let mut comparison = figures(&[vec![summary(0, 1_000), summary(0, 2_000), summary(60, 9_000)]]);
    comparison.runs[2].partial = true;
    let home = tempfile::tempdir().unwrap();
    report::write(&comparison, &home.path().join("out"), "").unwrap();
    let text = fs::read_to_string(home.path().join("out/seeds.csv")).unwrap();
    assert!(text.lines().any(|line| line.starts_with("p0,makespan_s,2,0,1,1,,1.5,,2,2,")), "{text}");
    assert!(text.contains("p0,lost_jobs,2,,,,,,,,,0,0,0,0.65762"), "{text}");
}

#[test]
fn a_repetition_without_a_record_is_not_drawn_as_an_empty_one() {
    let mut comparison = repeated(4);
    for run in comparison.runs.iter_mut().filter(|run| run.repetition > 1) {
        run.record = RunRecord::dropped();
    }
    let home = tempfile::tempdir().unwrap();
    report::write(&comparison, &home.path().join("out"), "").unwrap();
    for (file, column) in [("timeseries.csv", 1), ("attempts.csv", 1), ("jobs.csv", 1)] {
        let text = fs::read_to_string(home.path().join("out").join(file)).unwrap();
        let others = text.lines().skip(1).filter(|line| line.split(',').nth(column) != Some("1")).count();
        assert_eq!(others, 0, "{file}");
        assert!(text.lines().count() > 40, "{file}");
    }
    assert_eq!(fs::read_to_string(home.path().join("out/summary.csv")).unwrap().lines().count(), 13, "a row per seed and policy");
    let recorded = |run: &Value| run["recorded"].as_bool().unwrap();
    let document = report::summary_json(&comparison, "");
    assert_eq!(document["runs"].as_array().unwrap().iter().map(recorded).filter(|yes| *yes).count(), 3);
    assert!(report::table(&comparison, false, 200).contains("repetition 1 only"));
    assert!(!report::table(&repeated(4), false, 200).contains("repetition 1 only"));
}

#[test]
fn a_document_of_very_many_runs_is_bounded_and_says_so() {
    let comparison = figures(&[(0..3000).map(|_| summary(0, 1_000)).collect()]);
    let document = report::summary_json(&comparison, "");
    assert_eq!((document["runs"].as_array().unwrap().len(), &document["runs_in_all"]), (2000, &3000.into()));
}

/// Where the median lies, at 95 %, for 8 to 11 values: from the second of each end, as published tables have it.
fn second_of_each_end(comparison: &Comparison, policy: &str, metric: &str) -> (f64, f64) {
    let metric = Metric::named(metric).unwrap();
    let runs = comparison.runs.iter().filter(|run| run.policy == policy);
    let mut values: Vec<f64> = runs.map(|run| metric.value(&run.summary).unwrap().as_f64()).collect();
    values.sort_by(f64::total_cmp);
    (values[1], values[values.len() - 2])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whoever is said to be soonest is apart from every other.
    #[test]
    fn overlapping_intervals_are_not_ranked(
        times in prop::collection::vec((1_000_u64..20_000, prop::collection::vec(0_u64..6_000, 9..=11)), 2..5)
    ) {
        let policies: Vec<Vec<Summary>> =
            times.iter().map(|(base, more)| more.iter().map(|more| summary(0, base + more)).collect()).collect();
        let comparison = figures(&policies);
        let bounds: Vec<(f64, f64)> =
            (0..policies.len()).map(|i| second_of_each_end(&comparison, &format!("p{i}"), "makespan_s")).collect();
        let apart = |a: usize, b: usize| bounds[a].1 < bounds[b].0 || bounds[b].1 < bounds[a].0;
        let said = report::verdict(&comparison);
        let all_alone = |first: usize| (0..policies.len()).filter(|other| *other != first).all(|other| apart(first, other));
        for sentence in said.iter().filter(|sentence| sentence.contains("settled all jobs soonest")) {
            let first: usize = sentence[2..3].parse().unwrap();
            prop_assert!(all_alone(first), "{sentence}\n{bounds:?}");
        }
        for sentence in said.iter().filter(|sentence| sentence.contains("; `p")) {
            let last: usize = sentence.split("; `p").nth(1).unwrap()[..1].parse().unwrap();
            let named = |i: &usize| sentence.split("; ").next().unwrap().contains(&format!("`p{i}`"));
            prop_assert!((0..policies.len()).filter(named).all(|i| apart(i, last)), "{sentence}\n{bounds:?}");
        }
        let table = report::table(&comparison, true, 400);
        if (0..policies.len()).all(|a| (0..policies.len()).all(|b| !apart(a, b))) {
            prop_assert!(!table.contains("\x1b[1m"), "nothing is best where nothing is apart\n{table}");
        }
    }
}
