//! One seed, one journal: a run in virtual time is a function of scenario, policy, seed and profile, and of nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use simq::call::Outcome as Answer;
use simq::job::JobId;
use simq::journal::Step;
use simq::metrics::Fate;
use simq::profile::Profile;
use simq::rng::Seed;
use simq::scenario::Scenario;
use simq::sim::{self, Outcome, Plan};
use simq::worker::{Command as Ask, Event};

use crate::play::scenario;

/// Jitter, an outage, users, a budget, a breaker, retries that come due at the same time as new jobs: all that draws or ties.
const BUSY: &str = "seed = 11
    repetitions = 3
    [[jobs]]
    type = 'email'
    count = 60
    max_retries = 12
    permanent = 0.05
    [[jobs]]
    type = 'invoice'
    count = 40
    arrival = 'poisson'
    rate = '80/s'
    priority = 3
    max_retries = 12
    [workers]
    count = 3
    slots = 8
    connections = 2
    [downstream]
    servers = 6
    queue = 30
    latency = { kind = 'log-normal', median = '10ms', p99 = '60ms' }
    error_rate = 0.1
    client_timeout = '300ms'
    [downstream.users]
    rate = '50/s'
    [[downstream.outage]]
    at = '200ms'
    lasts = '400ms'
    mode = 'unavailable'
    probability = 0.9
    [policy.full]
    kind = 'exponential'
    base = '40ms'
    cap = '400ms'
    jitter = 'full'
    [policy.guarded]
    kind = 'constant'
    delay = '100ms'
    jitter = 'proportional'
    jitter_share = 0.5
    budget = 'tokens'
    breaker = 'ratio'
    breaker_open = '150ms'
    ";

fn play(scenario: &Scenario, index: usize, seed: Seed, profile: &Profile) -> Outcome {
    let plan = Plan { scenario, policy: &scenario.policies[index].policy, seed, profile, tape: true };
    let outcome = sim::run(plan, &AtomicBool::new(false)).unwrap();
    assert_eq!(outcome.breaches, [""; 0]);
    outcome
}

fn tape(outcome: Outcome) -> Vec<Step> {
    outcome.tape.unwrap().0
}

#[test]
fn one_seed_is_one_journal_and_another_seed_another() {
    let scenario = scenario(BUSY);
    for index in 0..2 {
        for profile in [Profile::built_in(), Profile::ideal()] {
            let once = tape(play(&scenario, index, scenario.seed, &profile));
            assert!(once.len() > 300, "{} steps", once.len());
            assert_eq!(once, tape(play(&scenario, index, scenario.seed, &profile)));
            assert_ne!(once, tape(play(&scenario, index, Seed(12), &profile)));
        }
    }
}

/// Every file of a report, by name.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: fs::DirEntry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap());
    fs::read_dir(dir).unwrap().flatten().map(entry).collect()
}

#[test]
fn the_files_of_a_seed_are_the_same_to_the_byte_on_any_number_of_threads() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("busy.toml");
    fs::write(&file, format!("name = 'busy'\nhorizon = '20s'\n{BUSY}")).unwrap();
    let report = |threads: &str, out: &str| {
        let out = home.path().join(out);
        let output = Command::new(env!("CARGO_BIN_EXE_simq"))
            .arg("sim")
            .arg(&file)
            .args(["--threads", threads, "--json", "--out"])
            .arg(&out)
            .current_dir(home.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        (files(&out), output.stdout)
    };
    let (once, said) = report("1", "once");
    for name in
        ["summary.csv", "seeds.csv", "timeseries.csv", "attempts.csv", "jobs.csv", "summary.json", "requests.png", "seeds.png"]
    {
        assert!(once.get(name).is_some_and(|bytes| bytes.len() > 100), "{name}: {:?}", once.keys());
    }
    for (threads, out) in [("1", "again"), ("2", "two"), ("7", "seven")] {
        let (other, told) = report(threads, out);
        assert_eq!(once.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
        for (name, bytes) in &once {
            assert!(other[name] == *bytes, "{name} differs with {threads} threads");
        }
        assert_eq!(said, told);
    }
}

#[test]
fn what_happens_at_one_instant_happens_in_the_order_in_which_it_was_planned() {
    let text = "[[jobs]]\ntype = 'email'\ncount = 24\n\
                [workers]\ncount = 3\nslots = 8\nbatch = 8\nconnections = 3\n\
                [downstream]\nservers = 100\nlatency = { kind = 'constant', value = '10ms' }\n\
                [policy.none]\nkind = 'none'\n";
    let scenario = scenario(text);
    let steps = tape(play(&scenario, 0, scenario.seed, &Profile::ideal()));
    let called: Vec<JobId> = steps
        .iter()
        .flat_map(|step| &step.commands)
        .filter_map(|command| match command {
            Ask::Call(request) => Some(request.job),
            _ => None,
        })
        .collect();
    assert_eq!(called, (1..=24).map(JobId).collect::<Vec<_>>(), "jobs that arrive together are called in order of their number");
    let replies: Vec<&Step> = steps.iter().filter(|step| matches!(step.event, Event::Replied { .. })).collect();
    let at = replies[0].at;
    assert_eq!(at.since_start(), Duration::from_millis(10));
    assert!(replies.len() == 24 && replies.iter().all(|step| step.at == at), "all are answered at one instant");
    let workers: Vec<u32> = replies.iter().map(|step| step.worker).collect();
    let asked: Vec<u32> = steps
        .iter()
        .filter(|step| step.commands.iter().any(|command| matches!(command, Ask::Call(_))))
        .flat_map(|step| vec![step.worker; step.commands.iter().filter(|command| matches!(command, Ask::Call(_))).count()])
        .collect();
    assert_eq!(workers, asked, "answers come in the order of the calls");
}

/// What became of every attempt: how it was answered, and the delay that was chosen.
fn delays(outcome: &Outcome) -> BTreeMap<(JobId, u32), Duration> {
    let retried = outcome.record.attempts.iter().filter_map(|attempt| match attempt.fate {
        Fate::Retried(after) => Some(((attempt.job, attempt.attempt), after)),
        _ => None,
    });
    retried.collect()
}

#[test]
fn a_jobs_attempt_has_the_same_luck_under_every_policy_and_on_every_machine() {
    let text = "seed = 5\n[[jobs]]\ntype = 'email'\ncount = 200\narrival = 'poisson'\nrate = '300/s'\nmax_retries = 6\npermanent = 0.1\n\
                [downstream]\nservers = 60\nqueue = 1000\nerror_rate = 0.4\n\
                latency = { kind = 'log-normal', median = '10ms', p99 = '60ms' }\nclient_timeout = '10s'\n\
                [policy.exponential]\nkind = 'exponential'\nbase = '50ms'\njitter = 'full'\n\
                [policy.capped]\nkind = 'exponential'\nbase = '50ms'\ncap = '100ms'\njitter = 'full'\n\
                [policy.none]\nkind = 'none'\n";
    let scenario = scenario(text);
    let runs: Vec<Outcome> = [Profile::ideal(), Profile::built_in()]
        .iter()
        .flat_map(|profile| (0..3).map(|index| play(&scenario, index, scenario.seed, profile)).collect::<Vec<_>>())
        .collect();
    let mut shared = 0;
    for run in &runs[1..] {
        let arrived = |run: &Outcome| run.record.jobs.iter().map(|job| (job.arrived, job.malformed)).collect::<Vec<_>>();
        assert_eq!(arrived(&runs[0]), arrived(run));
        // How long the service works on it and what it answers, whenever it comes.
        let served = |run: &Outcome| -> BTreeMap<(JobId, u32), (Option<Duration>, Option<Answer>)> {
            let served =
                |one: &simq::metrics::Service| ((one.job, one.attempt), (one.work.map(|work| work.length()), one.outcome));
            run.record.services.iter().map(served).collect()
        };
        let (first, other) = (served(&runs[0]), served(run));
        for (attempt, luck) in first.iter().filter(|(attempt, _)| other.contains_key(attempt)) {
            assert_eq!(*luck, other[attempt], "{attempt:?}");
            shared += 1;
        }
    }
    assert!(shared > 1000, "{shared} attempts in common");
    // Full jitter draws a share of the wait: with a cap at twice the base the first two waits are the same, and so are the delays.
    let (open, capped, elsewhere) = (delays(&runs[0]), delays(&runs[1]), delays(&runs[3]));
    assert_eq!(open, elsewhere, "the machine has no say in it");
    let early = |all: &BTreeMap<(JobId, u32), Duration>| {
        all.iter().filter(|((_, attempt), _)| *attempt <= 2).map(|(key, after)| (*key, *after)).collect::<Vec<_>>()
    };
    assert_eq!(early(&open), early(&capped));
    for ((job, attempt), after) in open.iter().filter(|((_, attempt), _)| *attempt == 4) {
        let ratio = after.as_secs_f64() / capped[&(*job, *attempt)].as_secs_f64();
        assert!((ratio - 4.0).abs() < 1e-3, "job {job}: the same share of 400 ms and of 100 ms, not {ratio}");
    }
}
