//! The gate: what it must catch, what it must not, and what it must refuse.

mod action;
mod baselines;
mod beside;
mod engine;
mod formats;
mod noise;
mod planted;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

use simq::check::{Runs, Time};
use simq::policy::Policy;
use simq::profile::Profile;
use simq::scenario::{self, Scenario};
use simq::sim;

/// Over in a moment of real time and nothing of virtual time; no engine is asked for.
const SMALL: &str = "name = 'small'\nhorizon = '30s'\nseed = 3\n\
    [[jobs]]\ntype = 'email'\ncount = 40\nmax_retries = 6\n\
    [downstream]\nservers = 20\nqueue = 100\nerror_rate = 0.3\nlatency = { kind = 'constant', value = '5ms' }\n\
    [policy.none]\nkind = 'none'\n[policy.constant]\nkind = 'constant'\ndelay = '20ms'\n\
    [[assert]]\nmetric = 'lost'\npolicy = 'constant'\nat_most = 2\n";

/// A folder with a scenario in it.
struct Desk {
    home: tempfile::TempDir,
}

/// What a command said, and how it ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Desk {
    fn with(scenario: &str) -> Desk {
        let desk = Desk { home: tempfile::tempdir().unwrap() };
        desk.write("scenario.toml", scenario);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut simq = Command::new(env!("CARGO_BIN_EXE_simq"));
        simq.args(args).current_dir(self.home.path());
        for name in ["CLICOLOR_FORCE", "NO_COLOR", "COLUMNS", "DATABASE_URL", "GITHUB_STEP_SUMMARY"] {
            simq.env_remove(name);
        }
        simq
    }

    fn simq(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    /// Saves a baseline of the scenario, and returns its text.
    fn baseline(&self) -> String {
        let said = self.simq(&["baseline", "save", "scenario.toml", "--out", "base.json", "--repetitions", "2"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        self.read("base.json")
    }

    fn gate(&self, more: &[&str]) -> Said {
        self.simq(&[&["gate", "scenario.toml", "--baseline", "base.json"], more].concat())
    }
}

/// The line, from 1, on which something first stands.
fn line_of(text: &str, what: &str) -> usize {
    text.lines().position(|line| line.contains(what)).unwrap() + 1
}

fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Said { code: status.code(), out: String::from_utf8(stdout).unwrap(), err: String::from_utf8(stderr).unwrap() }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The scenario that simq's own CI is gated with, and its baseline.
fn ci() -> (Scenario, Runs) {
    let text = fs::read_to_string(root().join("scenarios/ci.toml")).unwrap();
    let scenario = scenario::parse(&text, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
    let baseline = fs::read_to_string(root().join("baselines/ci.json")).unwrap();
    (scenario, simq::check::parse(&baseline).unwrap())
}

/// Plays a scenario in virtual time, each policy first changed by `plant`: what a regression of the code would do.
fn played(scenario: &Scenario, repetitions: u32, plant: impl Fn(&str, &mut Policy)) -> Runs {
    let mut runs = Runs {
        scenario: scenario.name.clone(),
        fingerprint: String::new(),
        time: Time::Virtual,
        simq: String::new(),
        machine: [("os".to_owned(), format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))].into(),
        policies: vec![],
        engine: Default::default(),
        unfit: vec![],
    };
    let profile = Profile::built_in();
    for repetition in 1..=repetitions {
        for named in &scenario.policies {
            let mut policy = named.policy.clone();
            plant(&named.name, &mut policy);
            let seed = scenario.seed.repetition(repetition);
            let plan = sim::Plan { scenario, policy: &policy, seed, profile: &profile, tape: false };
            let outcome = sim::run(plan, &AtomicBool::new(false)).unwrap();
            runs.add(&named.name, seed.0, &outcome.summary);
        }
    }
    runs
}
