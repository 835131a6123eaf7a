//! Virtual time plays whatever a scenario may say, and what it plays can be true: nothing lost, nothing held twice, nothing in limbo.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use simq::call::Outcome as Answer;
use simq::journal::{Entry, Sink, What};
use simq::metrics::{End, Fate};
use simq::profile::Profile;
use simq::rng::Seed;
use simq::scenario::{self, Scenario};
use simq::sim::{self, Error, Outcome, Plan};
use simq::time::Instant;
use simq::worker::{Command, Event};
use simq::workload::Arrival;

use crate::play::{HEALTHY, PATIENT, jobs, ms, scenario as parse};

fn play(scenario: &Scenario, index: usize, seed: Seed, profile: &Profile) -> Outcome {
    let plan = Plan { scenario, policy: &scenario.policies[index].policy, seed, profile, tape: false };
    sim::run(plan, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{}: {error}", scenario.policies[index].name))
}

/// The first policy, on the built-in machine.
fn play_first(text: &str) -> Outcome {
    let scenario = parse(text);
    let outcome = play(&scenario, 0, scenario.seed, &Profile::built_in());
    assert_sound(&scenario, &outcome);
    outcome
}

/// A machine whose store takes its time to settle.
fn slow() -> Profile {
    let mut slow = Profile::built_in();
    (slow.settle.wait_us, slow.settle.wait_p99_us) = (60_000.0, 90_000.0);
    slow
}

/// What holds of every run.
fn assert_sound(scenario: &Scenario, outcome: &Outcome) {
    assert_eq!(outcome.breaches, [""; 0]);
    let (counts, record) = (outcome.summary.counts, &outcome.record);
    assert_eq!(counts.jobs, scenario.job_count());
    assert_eq!(counts.completed + counts.discarded() + counts.unfinished, counts.jobs, "{counts:?}");
    let horizon = Instant::START + scenario.horizon;
    match outcome.end {
        End::Finished => assert_eq!(counts.unfinished, 0),
        End::Horizon => assert!(record.ended >= horizon),
        End::Stopped => panic!("nobody stopped it"),
    }
    for attempt in &record.attempts {
        assert!(attempt.due <= attempt.claimed && attempt.claimed <= attempt.sent, "{attempt:?}");
        assert!(attempt.answered.is_none_or(|at| at >= attempt.sent), "{attempt:?}");
        assert!(attempt.settled >= attempt.answered || attempt.settled.is_none(), "{attempt:?}");
        assert!(attempt.sent <= horizon, "nothing begins after the horizon: {attempt:?}");
        let waited = attempt.answered.map(|at| at.since(attempt.sent));
        if attempt.outcome == Some(Answer::TimedOut) {
            assert!(waited >= Some(scenario.downstream.client_timeout), "{attempt:?}");
        }
    }
    let refused = record.attempts.iter().filter(|attempt| attempt.outcome == Some(Answer::Refused)).count() as u64;
    let users_refused = record.users.iter().filter(|call| call.outcome == Some(Answer::Refused)).count() as u64;
    let sent = record.attempts.len() as u64 + record.users.len() as u64;
    assert!(record.arrivals_at_downstream + refused + users_refused <= sent, "who was refused did not arrive");
    assert_eq!(record.tally.sent, record.attempts.len() as u64);
}

/// With few enough jobs for a test.
fn thinned(mut scenario: Scenario, most: u64) -> Scenario {
    for group in &mut scenario.jobs {
        group.count = group.count.min(most);
        if let Arrival::Trace { times } = &mut group.arrival {
            times.truncate(most as usize);
        }
    }
    scenario
}

fn read(path: &Path) -> Scenario {
    let text = fs::read_to_string(path).unwrap();
    let beside = path.parent().unwrap();
    let trace = |name: &str| fs::read_to_string(beside.join(name));
    scenario::parse(&text, &trace).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_shipped_scenario_plays_under_every_policy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = fs::read_dir(root.join("scenarios")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "toml"));
    assert!(files.len() >= 6);
    for path in files {
        let scenario = thinned(read(&path), 60);
        for index in 0..scenario.policies.len() {
            let outcome = play(&scenario, index, scenario.seed, &Profile::built_in());
            assert_sound(&scenario, &outcome);
            assert!(outcome.summary.requests >= outcome.summary.counts.completed, "{}", path.display());
        }
    }
}

#[test]
fn the_reference_with_every_key_there_is_plays() {
    let text = include_str!("../../src/scenario/reference.toml");
    let trace = |_: &str| Ok("at\n0.1s\n0.2s\n0.5s\n".to_owned());
    let mut scenario = thinned(scenario::parse(text, &trace).unwrap(), 25);
    scenario.repetitions = 1;
    assert!(scenario.policies.len() > 15);
    for index in 0..scenario.policies.len() {
        let outcome = play(&scenario, index, scenario.seed, &Profile::built_in());
        assert_sound(&scenario, &outcome);
    }
}

#[test]
fn every_way_to_wait_and_to_claim_brings_all_jobs_to_their_end() {
    for workers in [
        "wait = 'poll'\npoll = '40ms'",
        "wait = 'due'\npoll = '100ms'",
        "wait = 'listen'\npoll = '30s'",
        "batch = 1\nconnections = 1",
        "slots = 50\nbatch = 50\nconnections = 1\nwait = 'poll'\npoll = '1s'",
        "claim = 'transaction'\nslots = 4\nconnections = 8\nwait = 'due'",
        "claim = 'transaction'\nslots = 4\nconnections = 3\nwait = 'listen'",
        "claim = 'transaction'\nslots = 4\nconnections = 8\nwait = 'poll'\npoll = '40ms'",
    ] {
        let arrival = "arrival = 'constant'\nrate = '200/s'";
        let downstream = HEALTHY.to_owned() + "error_rate = 0.3\nclient_timeout = '20s'\n";
        let outcome = play_first(&(jobs(60, arrival) + "[workers]\ncount = 2\n" + workers + "\n" + &downstream + PATIENT));
        assert_eq!((outcome.end, outcome.summary.counts.completed), (End::Finished, 60), "{workers}");
        assert!(outcome.record.attempts.len() > 60, "{workers}: some were retried");
        assert!(outcome.record.attempts.iter().all(|attempt| attempt.fate != Fate::Lost), "{workers}");
    }
}

/// How long until half of the jobs were completed.
fn half_done(workers: &str) -> std::time::Duration {
    let text = jobs(60, "") + "[workers]\ncount = 2\n" + workers + "\n" + HEALTHY + PATIENT;
    play_first(&text).summary.completion_p50.unwrap()
}

#[test]
fn settings_of_the_workers_have_their_effect() {
    let lag = |workers: &str| {
        let text =
            jobs(60, "arrival = 'constant'\nrate = '20/s'") + "[workers]\ncount = 2\n" + workers + "\n" + HEALTHY + PATIENT;
        play_first(&text).summary.schedule_lag.p50_ms
    };
    assert!(lag("wait = 'listen'") < 10.0 && lag("wait = 'poll'\npoll = '500ms'") > 50.0, "polling is late, being told is not");
    assert!(half_done("slots = 1") > half_done("slots = 8"), "slots bound what is under way");
    let claims = |workers: &str| {
        let outcome = play_first(&(jobs(64, "") + "[workers]\ncount = 1\nslots = 64\n" + workers + "\n" + HEALTHY + PATIENT));
        outcome.record.tally.claims - outcome.record.tally.empty_claims
    };
    assert!(claims("batch = 4") >= 16 && claims("batch = 64") <= 3, "batches bound what one claim takes");
}

#[test]
fn the_higher_priority_is_called_first() {
    let text = jobs(20, "priority = 1")
        + "[[jobs]]\ntype = 'urgent'\ncount = 20\npriority = 9\n[workers]\ncount = 1\nslots = 2\n"
        + HEALTHY
        + PATIENT;
    let outcome = play_first(&text);
    let groups: Vec<usize> = outcome.record.attempts.iter().map(|a| outcome.record.jobs[a.job.0 as usize - 1].group).collect();
    assert!(groups[..20].iter().all(|group| *group == 1) && groups[20..].iter().all(|group| *group == 0), "{groups:?}");
}

/// A healthy service, but for a fault from 50 ms to 250 ms.
fn with_fault(mode: &str, more: &str) -> Outcome {
    let text = jobs(120, "arrival = 'constant'\nrate = '400/s'")
        + "[workers]\ncount = 2\nslots = 40\n"
        + HEALTHY
        + "client_timeout = '60ms'\n"
        + &format!("[[downstream.outage]]\nat = '50ms'\nlasts = '200ms'\nmode = '{mode}'\n{more}\n")
        + PATIENT;
    play_first(&text)
}

#[test]
fn every_fault_strikes_as_it_does_in_real_time() {
    let status = Answer::status;
    for (mode, more, seen) in [
        ("unavailable", "", status(503)),
        ("refuse", "", Answer::Refused),
        ("hang", "", Answer::TimedOut),
        ("reset", "", Answer::Reset),
        ("slow-body", "takes = '1s'", Answer::TimedOut),
        ("brownout", "error_rate = 1.0", status(500)),
        ("permanent", "code = 422\nprobability = 1.0", status(422)),
        ("slow-start", "from = 0.01", Answer::TimedOut),
    ] {
        let outcome = with_fault(mode, more);
        let count = outcome.record.attempts.iter().filter(|attempt| attempt.outcome == Some(seen)).count();
        assert!(count >= 5, "{mode}: {count} calls ended as {seen:?}");
    }
    for mode in ["truncated", "garbage", "maintenance"] {
        let outcome = with_fault(mode, "");
        let failed = |attempt: &&simq::metrics::Attempt| attempt.outcome.is_some_and(|outcome| outcome != Answer::Ok);
        assert!(outcome.record.attempts.iter().filter(failed).count() > 10, "{mode}");
        assert_eq!(outcome.summary.counts.completed, 120, "{mode}: a failed answer completes no job");
    }
    let limited = with_fault("rate-limit", "rate = '50/s'\nretry_after = '1s'");
    let hint =
        |attempt: &&simq::metrics::Attempt| matches!(attempt.outcome, Some(Answer::Status { code: 429, retry_after: Some(_) }));
    assert!(limited.record.attempts.iter().filter(hint).count() > 10);
}

/// Found by a random scenario: the caller's number was given to another while its call was still in the queue.
#[test]
fn a_newest_first_queue_may_serve_callers_that_have_long_gone() {
    let text = "horizon = '1500ms'\n".to_owned()
        + &jobs(40, "max_retries = 1").replace("max_retries = 200\n", "")
        + "[workers]\ncount = 3\nslots = 5\nconnections = 1\n\
           [downstream]\nservers = 1\nqueue = 13\ndiscipline = 'lifo'\nlatency = { kind = 'constant', value = '20ms' }\n\
           client_timeout = '40ms'\n[policy.none]\nkind = 'none'\n";
    let outcome = play_first(&text);
    let gone = outcome.record.attempts.iter().filter(|attempt| attempt.outcome == Some(Answer::TimedOut)).count();
    assert!(gone > 10 && outcome.summary.wasted_work > Some(0.0), "{gone}");
}

#[test]
fn a_newest_first_queue_a_collapse_and_users_play_too() {
    let busy = jobs(200, "arrival = 'constant'\nrate = '400/s'") + "[workers]\ncount = 2\nslots = 60\n";
    let lifo = "[downstream]\nservers = 2\nqueue = 20\ndiscipline = 'lifo'\nshed_after = '40ms'\nclient_timeout = '80ms'\n\
                latency = { kind = 'exponential', mean = '10ms' }\n";
    let outcome = play_first(&(busy.clone() + lifo + PATIENT));
    let count = |answer: Answer| outcome.record.attempts.iter().filter(|attempt| attempt.outcome == Some(answer)).count();
    assert!(count(Answer::status(503)) > 10 && count(Answer::Ok) == 200, "some were turned away, all were served in the end");
    let collapsing = lifo.replace("discipline = 'lifo'\n", "")
        + "[downstream.collapse]\nfalls_at = 15\nback_after = '200ms'\n\
                      [downstream.users]\nrate = '100/s'\ntimeout = '50ms'\n";
    let outcome = play_first(&(busy + &collapsing + PATIENT));
    let users = outcome.summary.users.unwrap();
    assert!(users.all.calls > 50 && users.all.failed > 5, "{users:?}");
}

#[test]
fn a_lease_that_is_not_extended_in_time_is_lost_and_costs_a_retry() {
    // One connection that is always asked for something else: extensions come too late.
    let text = jobs(150, "")
        + "[workers]\ncount = 6\nslots = 25\nbatch = 25\nconnections = 1\nlease = '80ms'\n"
        + "[downstream]\nservers = 200\nqueue = 1000\nclient_timeout = '75ms'\nlatency = { kind = 'exponential', mean = '70ms' }\n"
        + PATIENT;
    let scenario = parse(&text);
    let outcome = play(&scenario, 0, scenario.seed, &slow());
    assert_sound(&scenario, &outcome);
    let tally = &outcome.record.tally;
    assert!(tally.lost > 0 && tally.returned > 0, "lost {}, returned {}", tally.lost, tally.returned);
}

/// What the audit's fold does not keep: what the workers asked for and were told.
#[derive(Default)]
struct Watcher {
    extended: u64,
    notified: u64,
    arrived: u64,
}

impl Sink for Watcher {
    fn record(&mut self, entry: Entry<'_>) {
        match entry.what {
            What::Arrived(_) => self.arrived += 1,
            What::Stepped { event, commands, .. } => {
                self.notified += u64::from(*event == Event::Notified);
                self.extended += commands.iter().filter(|command| matches!(command, Command::Extend { .. })).count() as u64;
            }
            What::Admitted { .. } | What::Released { .. } => {}
        }
    }
}

#[test]
fn long_calls_have_their_leases_extended() {
    let text = jobs(10, "")
        + "[workers]\ncount = 1\nlease = '600ms'\n\
           [downstream]\nservers = 100\nclient_timeout = '500ms'\nlatency = { kind = 'constant', value = '450ms' }\n"
        + PATIENT;
    let scenario = parse(&text);
    let profile = Profile::built_in();
    let plan =
        Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed: scenario.seed, profile: &profile, tape: false };
    let mut watcher = Watcher::default();
    let events = sim::watch(plan, &mut watcher).unwrap();
    assert_eq!(watcher.arrived, 10);
    assert!(watcher.extended > 0 && watcher.notified > 0 && events > 20, "{events} events");
}

#[test]
fn a_policy_that_retries_for_ever_ends_at_the_horizon() {
    let text = "horizon = '3s'\n".to_owned()
        + &jobs(10, "")
        + "[downstream]\nservers = 10\nlatency = { kind = 'constant', value = '5ms' }\n\
           [[downstream.outage]]\nat = '0s'\nlasts = '2999ms'\nmode = 'unavailable'\n\
           [policy.stubborn]\npreset = 'temporal.activity'\ntime_scale = 0.01\n";
    let outcome = play_first(&text);
    assert!(outcome.end == End::Finished || outcome.end == End::Horizon);
    let always_down = text.replace(
        "latency = { kind = 'constant', value = '5ms' }",
        "latency = { kind = 'constant', value = '5ms' }\nerror_rate = 1.0",
    );
    let outcome = play_first(&always_down);
    assert_eq!((outcome.end, outcome.summary.counts.unfinished), (End::Horizon, 10));
    assert!(outcome.summary.requests > 50);
}

#[test]
fn where_failing_and_retrying_take_no_time_the_run_is_given_up_and_says_why() {
    // Nothing counts its retries, which come at once, and a call that is turned away takes no time.
    let text = "horizon = '3s'\n".to_owned()
        + &jobs(5, "")
        + "[downstream]\nservers = 10\nlatency = { kind = 'constant', value = '5ms' }\n\
           [[downstream.outage]]\nat = '1s'\nlasts = '1s'\nmode = 'unavailable'\n\
           [policy.at-once]\nkind = 'none'\nmax_retries = 3\nuncounted_on = ['5xx']\n";
    let text = text.replace("count = 5\n", "count = 5\nat = '1500ms'\n");
    let scenario = parse(&text);
    let profile = Profile::ideal();
    let plan =
        Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed: scenario.seed, profile: &profile, tape: false };
    let error = sim::run(plan, &AtomicBool::new(false)).unwrap_err();
    let Error::Standstill { at } = error else { panic!("{error}") };
    assert_eq!(at, Instant::START + ms(1500));
    assert!(
        error.to_string().starts_with("time stands still at 1.500 s: a failure and its retry take no time at all"),
        "{error}"
    );
}

#[test]
fn the_most_retries_there_may_be_can_all_be_spent_at_once() {
    let text = "horizon = '3s'\n".to_owned()
        + &jobs(5, "").replace("max_retries = 200", "max_retries = 1000")
        + "[downstream]\nservers = 10\nlatency = { kind = 'constant', value = '5ms' }\n\
           [[downstream.outage]]\nat = '0s'\nlasts = '1s'\nmode = 'unavailable'\n\
           [policy.at-once]\nkind = 'none'\n";
    let scenario = parse(&text);
    let outcome = play(&scenario, 0, scenario.seed, &Profile::ideal());
    assert_sound(&scenario, &outcome);
    assert_eq!((outcome.summary.requests, outcome.record.ended), (5005, Instant::START));
}

#[test]
fn who_stops_a_run_gets_a_part_that_holds_together() {
    let scenario = parse(&(jobs(3000, "arrival = 'constant'\nrate = '500/s'") + HEALTHY + "error_rate = 0.3\n" + PATIENT));
    let stop = AtomicBool::new(true);
    let profile = Profile::built_in();
    let plan =
        Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed: scenario.seed, profile: &profile, tape: false };
    let outcome = sim::run(plan, &stop).unwrap();
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Stopped, &[][..]));
    let counts = outcome.summary.counts;
    assert!(counts.jobs < 3000 && counts.completed > 0, "{counts:?}");
    assert!(stop.load(Ordering::Relaxed));
}

/// Scenarios of all kinds, as text.
fn any_scenario() -> impl Strategy<Value = String> {
    let of = |words: &'static [&'static str]| prop::sample::select(words);
    let arrivals = ["arrival = 'at-once'", "arrival = 'constant'\nrate = '100/s'", "arrival = 'poisson'\nrate = '250/s'"];
    let jobs = (1_u64..40, prop::sample::select(arrivals.to_vec()), -3_i16..4, 0_u32..6, 0_u32..3).prop_map(
        |(count, arrival, priority, retries, malformed)| {
            format!(
                "[[jobs]]\ntype = 'email'\ncount = {count}\n{arrival}\npriority = {priority}\nmax_retries = {retries}\npermanent = {}\n",
                f64::from(malformed) / 10.0
            )
        },
    );
    let workers = (
        1_u32..4,
        1_u32..9,
        1_u32..5,
        of(&["listen", "due", "poll"]),
        of(&["lease", "lease", "transaction"]),
        10_u64..200,
    )
        .prop_map(|(count, slots, connections, wait, claim, poll)| {
            format!(
                "[workers]\ncount = {count}\nslots = {slots}\nconnections = {connections}\nwait = '{wait}'\nclaim = '{claim}'\n\
                 poll = '{poll}ms'\nlease = '{}ms'\n",
                122 + poll % 7 * 20
            )
        });
    let latency = of(&[
        "{ kind = 'constant', value = '20ms' }",
        "{ kind = 'exponential', mean = '20ms' }",
        "{ kind = 'log-normal', median = '10ms', p99 = '200ms' }",
    ]);
    let queue = of(&["", "discipline = 'lifo'\n", "shed_after = '30ms'\n", "discipline = 'lifo'\nshed_after = '30ms'\n"]);
    let extra = of(&["", "", "[downstream.users]\nrate = '60/s'\n", "[downstream.collapse]\nknee = 3\nper_call = 0.2\n"]);
    let downstream = (1_u32..12, 0_u32..20, queue, latency, 0_u32..4, 40_u64..120, extra).prop_map(
        |(servers, queue, discipline, latency, errors, timeout, extra)| {
            format!(
                "[downstream]\nservers = {servers}\nqueue = {queue}\n{discipline}latency = {latency}\nerror_rate = {}\n\
                 client_timeout = '{timeout}ms'\n{extra}",
                f64::from(errors) / 10.0
            )
        },
    );
    let mode = of(&[
        "unavailable'\nretry_after = '1s'\nprobability = 0.7",
        "refuse'",
        "hang'\nprobability = 0.6",
        "reset'\nprobability = 0.7",
        "slow-body'\nprobability = 0.7",
        "truncated'\nprobability = 0.7",
        "garbage'\nprobability = 0.7",
        "maintenance'\nprobability = 0.7",
        "brownout'",
        "rate-limit'\nrate = '50/s'",
        "slow-start'",
        "permanent'\nprobability = 0.2",
    ]);
    let outages = prop::collection::vec((0_u64..8, 1_u64..4, mode), 0..3).prop_map(|outages| {
        let outage = |(at, lasts, mode): (u64, u64, &str)| {
            format!("[[downstream.outage]]\nat = '{}ms'\nlasts = '{}ms'\nmode = '{mode}\n", at * 100, lasts * 150)
        };
        outages.into_iter().map(outage).collect::<String>()
    });
    let policy = of(&[
        "kind = 'none'",
        "kind = 'constant'\ndelay = '50ms'",
        "kind = 'exponential'\nbase = '20ms'\ncap = '500ms'\njitter = 'full'",
        "kind = 'exponential'\nbase = '20ms'\ncap = '500ms'\njitter = 'decorrelated'\nretry_after = 'at-least'",
        "kind = 'linear'\nbase = '10ms'\nstep = '30ms'\nquantum = '100ms'",
        "kind = 'constant'\ndelay = '30ms'\nbudget = 'tokens'\nbudget_max = 20\nmax_retries = 60",
        "kind = 'constant'\ndelay = '30ms'\nbudget = 'ratio'\nbudget_share = 0.2\nbudget_scope = 'shared'",
        "kind = 'constant'\ndelay = '30ms'\nbreaker = 'consecutive'\nbreaker_open = '200ms'\nmax_retries = 40",
        "kind = 'constant'\ndelay = '30ms'\nbreaker = 'ratio'\nbreaker_least = 5\nbreaker_open = '200ms'\nbreaker_scope = 'shared'",
        "kind = 'none'\nrate = 'fixed'\nrate_limit = '80/s'\nrate_scope = 'shared'",
        "preset = 'aws.adaptive'\ntime_scale = 0.1",
        "preset = 'sidekiq'\ntime_scale = 0.001\nmax_retries = 8",
    ])
    .prop_map(|policy| format!("[policy.any]\n{policy}\n"));
    let horizon = prop::sample::select(vec!["1500ms", "4s", "60s"]).prop_map(|horizon| format!("horizon = '{horizon}'\n"));
    (horizon, prop::collection::vec(jobs, 1..4), workers, downstream, outages, policy).prop_map(
        |(horizon, jobs, workers, downstream, outages, policy)| {
            horizon + &jobs.concat() + &workers + &downstream + &outages + &policy
        },
    )
}

#[test]
fn random_scenarios_lose_nothing_hold_nothing_twice_and_end() {
    let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config.clone(), proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm));
    let met = std::cell::RefCell::new(BTreeMap::<&str, u32>::new());
    let result = runner.run(&(any_scenario(), any::<u64>(), 0..3_usize), |(text, seed, machine)| {
        let text = format!("name = 'any'\n{text}");
        let no_trace = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        // Some faults hide each other, and are refused.
        let scenario = scenario::parse(&text, &no_trace).map_err(|error| TestCaseError::reject(error.to_string()))?;
        let profile = [Profile::built_in(), Profile::ideal(), slow()].into_iter().nth(machine).unwrap();
        let plan =
            Plan { scenario: &scenario, policy: &scenario.policies[0].policy, seed: Seed(seed), profile: &profile, tape: false };
        let outcome = sim::run(plan, &AtomicBool::new(false)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        assert_sound(&scenario, &outcome);
        let (summary, record) = (&outcome.summary, &outcome.record);
        let mut met = met.borrow_mut();
        let mut note = |what, happened: bool| *met.entry(what).or_default() += u32::from(happened);
        note("an outage that cost calls", summary.wasted_requests > 0);
        note("nothing was lost", summary.counts.lost() == 0);
        note("something was lost", summary.counts.lost() > 0);
        note("the horizon", outcome.end == End::Horizon);
        note("a time-out", record.attempts.iter().any(|attempt| attempt.outcome == Some(Answer::TimedOut)));
        note("users", summary.users.is_some());
        note("a malformed job", summary.counts.malformed > 0);
        let stingy = text.contains("budget = 'tokens'");
        note("an empty budget", stingy && summary.counts.exhausted > 0);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let met = met.into_inner();
    for (what, times) in &met {
        assert!(*times > 0, "no scenario met: {what}\n{met:?}");
    }
    assert_eq!(met.len(), 8);
}
