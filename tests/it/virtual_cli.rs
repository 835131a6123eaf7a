//! `simq sim`, as a person or a script sees it: what it prints, what it writes, how it exits.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use crate::processes::signal;

/// A few jobs and two policies: over at once.
const SMALL: &str = "name = 'small'\nhorizon = '30s'\nseed = 3\n\
    [[jobs]]\ntype = 'email'\ncount = 30\nmax_retries = 20\npermanent = 0.1\n\
    [downstream]\nservers = 20\nqueue = 100\nerror_rate = 0.3\nlatency = { kind = 'exponential', mean = '5ms' }\n\
    [policy.none]\nkind = 'none'\n[policy.constant]\nkind = 'constant'\ndelay = '20ms'\n";

/// A downstream that never answers well, and a policy that never gives up.
const STUBBORN: &str = "name = 'stubborn'\nhorizon = '20s'\nseed = 8\n\
    [[jobs]]\ntype = 'email'\ncount = 5\n\
    [downstream]\nservers = 20\nerror_rate = 1.0\nlatency = { kind = 'constant', value = '50ms' }\n\
    [policy.stubborn]\npreset = 'temporal.activity'\ntime_scale = 0.01\n";

struct Desk(tempfile::TempDir);

#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    fn command(&self, scenario: &str, args: &[&str]) -> Command {
        let file = self.0.path().join("scenario.toml");
        fs::write(&file, scenario).unwrap();
        let mut simq = Command::new(env!("CARGO_BIN_EXE_simq"));
        simq.arg("sim").arg(&file).args(args).current_dir(self.0.path());
        for name in ["CLICOLOR_FORCE", "NO_COLOR", "COLUMNS", "DATABASE_URL"] {
            simq.env_remove(name);
        }
        simq
    }

    fn sim(&self, scenario: &str, args: &[&str]) -> Said {
        let out = self.out();
        let Output { status, stdout, stderr } = self.command(scenario, args).arg("--out").arg(out).output().unwrap();
        Said { code: status.code(), out: String::from_utf8(stdout).unwrap(), err: String::from_utf8(stderr).unwrap() }
    }

    fn summary(&self) -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(self.out().join("summary.json")).unwrap()).unwrap()
    }

    /// A usage error in a sentence, before anything is written.
    fn refused(&self, scenario: &str, args: &[&str]) -> String {
        let said = self.sim(scenario, args);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.starts_with("error: ") && !self.out().exists(), "{said:?}");
        said.err
    }
}

#[test]
fn a_scenario_is_played_without_a_database_and_reported() {
    let desk = Desk::new();
    let mut simq = desk.command(SMALL, &[]);
    let Output { status, stdout, stderr } = simq.env("PATH", "").env("SIMQ_PG_FETCH", "0").output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(
        out.contains("policy") && out.contains("Virtual time. Seed 3; ") && out.contains("Report: reports/small-sim"),
        "{out}"
    );
    assert!(err.contains("million events a second") && !out.contains("million"), "how long it took is on stderr alone: {err}");
    let dir = desk.0.path().join("reports/small-sim");
    for file in ["summary.csv", "timeseries.csv", "attempts.csv", "jobs.csv", "summary.json", "requests.png"] {
        assert!(fs::metadata(dir.join(file)).is_ok_and(|meta| meta.len() > 0), "{file}");
    }
    assert!(!dir.join("seeds.csv").exists(), "one seed has no spread");
}

#[test]
fn many_seeds_have_a_row_each_and_a_line_together() {
    let desk = Desk::new();
    let said = desk.sim(SMALL, &["--seeds", "9"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("9 seeds from 3") && said.out.contains("medians of 9 repetitions"), "{}", said.out);
    assert!(said.out.contains("timeseries.csv, attempts.csv and jobs.csv: repetition 1 only"), "{}", said.out);
    let lines = |file: &str| fs::read_to_string(desk.out().join(file)).unwrap().lines().count();
    assert_eq!(lines("summary.csv"), 1 + 9 * 2);
    assert_eq!(lines("jobs.csv"), 1 + 30 * 2, "of the first seed");
    let summary = desk.summary();
    let policies: Vec<&str> = summary["seeds"].as_array().unwrap().iter().map(|one| one["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["none", "constant"]);
    assert!(summary["seeds"][0]["metrics"]["requests"]["median_low"].is_number());
}

#[test]
fn what_makes_no_sense_is_a_usage_error_before_anything_is_written() {
    let desk = Desk::new();
    for seeds in ["0", "-1", "1000001", "many"] {
        assert!(desk.refused(SMALL, &["--seeds", seeds]).contains(seeds));
    }
    assert!(desk.refused(SMALL, &["--threads", "0"]).contains('0'));
    assert!(desk.refused(SMALL, &["--policy", "nobody"]).contains("the scenario has no policy `nobody`: it has none, constant"));
    assert!(desk.refused(SMALL, &["--profile", "nowhere.toml"]).contains("could not read the profile `nowhere.toml`"));
    assert!(desk.refused(SMALL, &["--profile", "."]).contains("could not read the profile `.`"));
    assert!(desk.refused(SMALL, &["--profile", "scenario.toml"]).contains("`scenario.toml` is not a profile: "));
    assert!(desk.refused(SMALL, &["--profile", "scenario.toml", "--ideal"]).contains("--ideal"));
    assert!(desk.refused("name = 'small'\n", &[]).contains("scenario.toml"));
    fs::write(desk.0.path().join("binary"), [0xFF, 0xFE, 0x00]).unwrap();
    assert!(desk.refused(SMALL, &["--profile", "binary"]).contains("could not read the profile `binary`"));
    fs::write(desk.0.path().join("old.toml"), "version = 0\n").unwrap();
    assert!(desk.refused(SMALL, &["--profile", "old.toml"]).contains("`old.toml` is not a profile: it is of version 0"));
}

#[test]
fn a_report_that_has_no_place_is_refused_before_anything_is_played() {
    let desk = Desk::new();
    fs::write(desk.out(), "mine").unwrap();
    let said = desk.sim(SMALL, &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("is not a folder: name another place for the report"), "{said:?}");
    let below = desk.out().join("below");
    let output = desk.command(SMALL, &["--out"]).arg(&below).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(desk.out()).unwrap(), "mine");
}

#[test]
fn a_policy_that_never_gives_up_ends_at_the_horizon_and_says_so() {
    let desk = Desk::new();
    let said = desk.sim(STUBBORN, &["--seeds", "2"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let sentence =
        "`stubborn` lost 5 of 5 jobs in 2 of 2 repetitions, all of them unfinished when the run ended, at its horizon of 20 s.";
    assert!(said.out.contains(sentence), "{}", said.out);
    assert_eq!(desk.summary()["seeds"][0]["shares"]["horizon_reached"]["hits"], 2);
}

#[test]
fn time_that_stands_still_is_an_error_that_names_policy_and_seed() {
    let desk = Desk::new();
    // Nothing counts its retries, which come at once, and a call that is turned away takes no time.
    let (before, _) = STUBBORN.split_once("[policy").unwrap();
    let still = before.to_owned()
        + "[[downstream.outage]]\nat = '0s'\nlasts = '19s'\nmode = 'unavailable'\n\
           [policy.calm]\nkind = 'constant'\ndelay = '1s'\nmax_retries = 30\n\
           [policy.stubborn]\nkind = 'none'\nmax_retries = 3\nuncounted_on = ['5xx']\n";
    for threads in ["1", "2"] {
        let said = desk.refused(&still, &["--ideal", "--quiet", "--seeds", "3", "--threads", threads]);
        assert!(said.contains("error: policy `stubborn`, seed 8: time stands still at "), "{said}");
        assert!(said.contains("give the downstream a latency, the policy a delay"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let said = desk.sim(&still, &["--ideal", "--policy", "calm"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn memory_is_stated_before_a_run_that_takes_much() {
    let desk = Desk::new();
    let huge = SMALL
        .replace("count = 30\n", "count = 10000000\n")
        .replace("'30s'", "'1ms'")
        .replace("horizon = '1ms'", "horizon = '200ms'");
    let mut simq = desk.command(&huge, &["--policy", "constant"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(simq.stderr.take().unwrap()).read_line(&mut line).unwrap();
    simq.kill().unwrap();
    simq.wait().unwrap();
    assert!(line.starts_with("10000000 jobs under 1 policy, 1 run, 1 at once: at least 3.7 GiB of memory"), "{line}");
    let said = desk.sim(SMALL, &["--seeds", "2"]);
    assert!(!said.err.contains("GiB"), "{}", said.err);
}

#[test]
fn ctrl_c_keeps_the_seeds_that_were_finished() {
    let desk = Desk::new();
    let mut simq = desk.command(SMALL, &["--seeds", "100000"]);
    let mut simq = simq.arg("--out").arg(desk.out()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(simq.stderr.take().unwrap());
    let mut line = String::new();
    // Two policies: with a few runs done a seed is whole.
    let done = loop {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "it ended by itself");
        let done = line.split_once(" of 200000 runs done after ").and_then(|(done, _)| done.parse::<u64>().ok());
        if let Some(done) = done.filter(|done| *done >= 6) {
            break done;
        }
    };
    signal(simq.id(), Signal::INT);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    let output = simq.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{rest}");
    assert!(rest.contains("stopping: what is finished is kept"), "{rest}");
    assert!(
        out.contains("Interrupted: these figures cover a part of the runs only.") && out.contains(" of 100000 seeds from 3"),
        "{out}"
    );
    let summary = desk.summary();
    let runs = summary["runs_in_all"].as_u64().unwrap();
    assert!(summary["partial"] == true && runs.is_multiple_of(2) && runs + 2 >= done && runs < 200_000, "{runs} of {done}");
    assert!(summary["runs"].as_array().unwrap().iter().all(|run| run["partial"] == false), "no seed is kept in part");
}

#[test]
fn json_and_quiet_are_for_scripts() {
    let desk = Desk::new();
    let said = desk.sim(SMALL, &["--json", "--seeds", "6"]);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told, desk.summary(), "the same as in the report");
    let said = desk.sim(SMALL, &["--quiet"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", ""));
    let said = desk.sim(SMALL, &["--quiet", "--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&said.out).is_ok() && said.err.is_empty(), "{}", said.err);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let desk = Desk::new();
    let mut simq = desk.command(SMALL, &["--out"]).arg(desk.out()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(simq.stdout.take());
    let output = simq.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(!err.contains("error") && !err.contains("panicked"), "{err}");
    assert!(Path::new(&desk.out()).join("summary.csv").exists(), "the report is written all the same");
}

#[test]
fn a_seed_of_its_own_gives_what_it_gave_among_others() {
    let desk = Desk::new();
    desk.sim(SMALL, &["--seeds", "3", "--quiet"]);
    let runs = desk.summary()["runs"].clone();
    let third = runs.as_array().unwrap().iter().find(|run| run["repetition"] == 3).unwrap().clone();
    let seed = third["seed"].to_string();
    desk.sim(SMALL, &["--seed", &seed, "--quiet"]);
    assert_eq!(desk.summary()["runs"][0]["summary"], third["summary"], "seed {seed}");
}
