//! How often the gate cries wolf: the same code held against itself, in simulated noise and for real.

use std::collections::BTreeMap;

use simq::check::{Finding, PolicyRuns, Rule, Runs, Time, Verdict, noisy, watched};
use simq::job::JobId;
use simq::rng::{Seed, Stream};

use super::Desk;

const GATES: u32 = 200;
const REPETITIONS: usize = 10;

/// Three policies, each figure log-normal around its own middle: `spread` is the standard deviation of the logarithm. One of them slower by `factor`.
fn noisy_runs(number: u32, spread: f64, factor: f64) -> Runs {
    let mut policies = Vec::new();
    for (p, name) in ["none", "exponential", "jitter"].into_iter().enumerate() {
        let mut figures: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        for (m, one) in watched(&[]).unwrap().into_iter().enumerate() {
            let values = (0..REPETITIONS).map(|repetition| {
                let mut draw = Seed(7).draw(Stream::Jitter, JobId(u64::from(number)), (p * 1000 + m * 100 + repetition) as u32);
                // The sum of twelve uniform draws is as good as normal.
                let normal: f64 = (0..12).map(|_| draw.unit()).sum::<f64>() - 6.0;
                let slower = if name == "jitter" && one.metric.name == "settle_ms_p50" { factor } else { 1.0 };
                Some(slower * 100.0 * (normal * spread).exp())
            });
            figures.insert(one.metric.name.to_owned(), values.collect());
        }
        policies.push(PolicyRuns { name: name.to_owned(), seeds: (0..REPETITIONS as u64).collect(), figures });
    }
    Runs {
        scenario: "noise".to_owned(),
        fingerprint: String::new(),
        time: Time::Real,
        simq: String::new(),
        machine: BTreeMap::new(),
        policies,
        engine: BTreeMap::new(),
        unfit: vec![],
    }
}

fn gates(count: u32, (spread, tolerance): (f64, Option<f64>), factor: f64) -> Vec<Vec<Finding>> {
    let mut figures = watched(&[]).unwrap();
    for one in &mut figures {
        one.tolerance = tolerance.unwrap_or(one.tolerance);
    }
    let gate = |n: u32| noisy(&noisy_runs(2 * n, spread, factor), &noisy_runs(2 * n + 1, spread, 1.0), &figures, Rule::default());
    (0..count).map(gate).collect()
}

fn with(gates: &[Vec<Finding>], verdict: impl Fn(&Finding) -> bool) -> usize {
    gates.iter().filter(|findings| findings.iter().any(&verdict)).count()
}

#[test]
fn the_same_code_against_itself_two_hundred_times_is_rarely_called_worse() {
    let stated = Rule::default().alpha;
    for (spread, tolerance) in [(0.1, None), (0.1, Some(0.0))] {
        let gates = gates(GATES, (spread, tolerance), 1.0);
        let alarms = with(&gates, |finding| matches!(finding.verdict, Verdict::Worse | Verdict::Better));
        let same = gates.iter().flatten().filter(|finding| finding.verdict == Verdict::Same).count();
        let all = gates.iter().flatten().count();
        println!(
            "noise {:.0} %, tolerance {}: {alarms} false alarms in {GATES} gates of {} comparisons (stated: at most {:.0} %); {} % called the same",
            spread * 100.0,
            tolerance.map_or("usual".to_owned(), |tolerance| format!("{:.0} %", tolerance * 100.0)),
            all / gates.len(),
            stated * 100.0,
            same * 100 / all,
        );
        // What chance allows at the stated rate: three of 200 at 1 % are not rare, and here the draws are always the same.
        assert!(alarms as f64 <= stated * f64::from(GATES) + 1.0, "{alarms} false alarms");
    }
}

#[test]
fn a_slower_settlement_is_found_in_noise_and_named() {
    for (spread, factor, least) in [(0.05, 1.5, 49), (0.1, 1.5, 40)] {
        let gates = gates(50, (spread, None), factor);
        let caught = with(&gates, |finding| finding.verdict == Verdict::Worse && finding.title() == "jitter · settle_ms_p50");
        let others = with(&gates, |finding| finding.verdict == Verdict::Worse && finding.title() != "jitter · settle_ms_p50");
        println!(
            "noise {:.0} %, slower by {factor}: caught in {caught} of 50 gates, {others} times something else",
            spread * 100.0
        );
        assert!(caught >= least && others <= 1, "{caught} {others}");
    }
}

#[test]
fn what_can_not_be_told_is_inconclusive_and_says_how_many_repetitions_would_tell() {
    let gates = gates(10, (0.3, Some(0.1)), 1.0);
    let more: Vec<usize> = gates
        .iter()
        .flatten()
        .filter_map(|finding| match finding.verdict {
            Verdict::Inconclusive { more } => more,
            _ => None,
        })
        .collect();
    assert!(more.len() > 50, "{}", more.len());
    assert!(more.iter().all(|more| (1..=200).contains(more)));
}

/// Minutes: `cargo test --release --test it -- --ignored --nocapture gated_against_itself`.
#[test]
#[ignore = "runs for real, two hundred and ten times"]
fn the_same_code_gated_against_itself_twenty_times_for_real_is_rarely_called_worse() {
    let desk = Desk::with(
        "name = 'real'\nhorizon = '30s'\nseed = 3\n\
         [[jobs]]\ntype = 'email'\ncount = 120\nmax_retries = 20\n\
         [workers]\ncount = 2\nslots = 16\n\
         [downstream]\nservers = 8\nqueue = 40\nlatency = { kind = 'constant', value = '10ms' }\n\
         [[downstream.outage]]\nat = '100ms'\nlasts = '300ms'\nmode = 'unavailable'\n\
         [policy.jitter]\nkind = 'exponential'\nbase = '50ms'\ncap = '400ms'\njitter = 'full'\n",
    );
    let save = ["baseline", "save", "scenario.toml", "--out", "base.json", "--time", "real", "--repetitions", "10", "-q"];
    // On a busy machine simq says that it was the limit itself, and makes no baseline of such runs.
    let saved = (1..=20).find(|_| desk.simq(&save).code == Some(0));
    println!("a baseline was saved at attempt {}", saved.expect("the machine is too busy to measure on"));
    let (mut alarms, mut undecided, mut better) = (0, 0, 0);
    for gate in 1..=20 {
        let said = desk.gate(&["-q", "--format", "text"]);
        alarms += u32::from(said.code == Some(3));
        better += u32::from(said.out.contains("\nbetter ") || said.out.starts_with("better "));
        undecided += u32::from(said.code == Some(4));
        let verdicts: Vec<&str> = said.out.lines().filter_map(|line| line.split("  ").next()).collect();
        println!("gate {gate}: exit {:?}: {}", said.code, verdicts.join(", "));
        if said.code == Some(3) {
            println!("{}", said.out);
        }
    }
    println!("{better} of 20 gates called the same code better, which is as wrong: the machine's load changed");
    println!("{alarms} of 20 gates of the same code were false alarms, {undecided} were refused");
    assert!(alarms <= 1, "{alarms} false alarms");
}
