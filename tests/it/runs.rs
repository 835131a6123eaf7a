//! Real runs: Postgres, workers and an HTTP service, for about a second each.
//!
//! The machine may be busy, so nothing is said of how long things take. What is said of outages holds for the calls that were
//! certainly inside the window, sent after its start and answered before its end, and there must have been some.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use simq::call::Outcome as Answer;
use simq::job::{JobId, Memory, State};
use simq::metrics::{Attempt, Fate};
use simq::policy::{Decision, Why};
use simq::real::{End, Outcome};
use simq::rng::Stream;
use simq::scenario::Scenario;
use simq::time::{Instant, Window};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};
use tokio::sync::watch;

use crate::cluster;
use crate::play::{eventually, plan, play, scenario};

/// A service that is fast and has room for everybody.
const HEALTHY: &str = "[downstream]\nservers = 100\nqueue = 1000\nlatency = { kind = 'constant', value = '5ms' }\n";
const PATIENT: &str = "[policy.patient]\nkind = 'constant'\ndelay = '60ms'\njitter = 'proportional'\njitter_share = 0.5\n";

fn jobs(count: u32, more: &str) -> String {
    format!("[[jobs]]\ntype = 'email'\ncount = {count}\nmax_retries = 200\n{more}\n")
}

fn outage(window: &str, mode: &str) -> String {
    format!("[[downstream.outage]]\n{window}\nmode = {mode}\n")
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Calls that arrived inside the window: sent after its start, answered before its end.
fn inside(outcome: &Outcome, window: Window) -> Vec<Attempt> {
    let sure = |attempt: &&Attempt| attempt.sent >= window.from && attempt.answered.is_some_and(|at| at < window.until);
    let calls: Vec<Attempt> = outcome.record.attempts.iter().filter(sure).copied().collect();
    assert!(!calls.is_empty(), "no call met the outage");
    calls
}

/// Calls that arrived outside.
fn outside(outcome: &Outcome, window: Window) -> Vec<Attempt> {
    let sure = |attempt: &&Attempt| attempt.sent >= window.until || attempt.answered.is_some_and(|at| at < window.from);
    outcome.record.attempts.iter().filter(sure).copied().collect()
}

fn answer(attempt: &Attempt) -> Answer {
    attempt.outcome.expect("every call was answered")
}

fn took(attempt: &Attempt) -> Duration {
    attempt.answered.expect("every call was answered").since(attempt.sent)
}

fn count(outcome: &Outcome, answer: Answer) -> u64 {
    outcome.record.attempts.iter().filter(|attempt| attempt.outcome == Some(answer)).count() as u64
}

fn assert_all_completed(outcome: &Outcome) {
    assert_eq!(outcome.end, End::Finished);
    let counts = outcome.summary.counts;
    assert_eq!((counts.completed, counts.unfinished), (counts.jobs, 0), "{counts:?}");
}

fn attempts_by_job(outcome: &Outcome) -> BTreeMap<JobId, Vec<Attempt>> {
    let mut jobs: BTreeMap<JobId, Vec<Attempt>> = BTreeMap::new();
    for attempt in &outcome.record.attempts {
        jobs.entry(attempt.job).or_default().push(*attempt);
    }
    jobs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_ends_once_and_no_two_attempts_at_it_overlap() {
    let text = "[[jobs]]\ntype = 'email'\ncount = 400\npermanent = 0.1\nmax_retries = 3\n\
                [workers]\ncount = 8\nslots = 4\nconnections = 4\n\
                [downstream]\nservers = 100\nqueue = 1000\nerror_rate = 0.4\nlatency = { kind = 'exponential', mean = '5ms' }\n\
                client_timeout = '20s'\n\
                [policy.hasty]\nkind = 'exponential'\nbase = '1ms'\njitter = 'full'\n";
    let outcome = play(&scenario(text)).await;
    assert_eq!(outcome.end, End::Finished);
    let record = &outcome.record;
    let attempts = attempts_by_job(&outcome);
    assert_eq!((record.jobs.len(), attempts.len()), (400, 400));
    for job in &record.jobs {
        let attempts = &attempts[&job.job];
        let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.attempt).collect();
        assert_eq!(numbers, (1..=attempts.len() as u32).collect::<Vec<_>>(), "job {}", job.job);
        let (last, earlier) = attempts.split_last().unwrap();
        assert!(earlier.iter().all(|attempt| matches!(attempt.fate, Fate::Retried(_))), "job {}: {earlier:?}", job.job);
        match last.fate {
            Fate::Completed => assert_eq!((job.state, job.why), (State::Completed, None)),
            Fate::Discarded(why) => assert_eq!((job.state, job.why), (State::Discarded, Some(why))),
            other => panic!("job {} ended as {other:?}", job.job),
        }
        assert_eq!((job.retries, job.finished), (earlier.len() as u32, last.settled));
        for pair in attempts.windows(2) {
            assert!(pair[1].claimed >= pair[0].answered.unwrap(), "job {}: {pair:?}", job.job);
        }
    }
    let counts = outcome.summary.counts;
    assert_eq!(counts.completed + counts.permanent + counts.exhausted, 400);
    assert!(counts.completed > 0 && counts.permanent > 0 && counts.exhausted > 0, "every end was met: {counts:?}");
    let moved = |attempts: &Vec<Attempt>| attempts.iter().map(|attempt| attempt.worker).collect::<BTreeSet<_>>().len() > 1;
    assert!(attempts.values().any(moved), "some job went from worker to worker");
    assert_eq!(record.tally.sent, record.attempts.len() as u64);
    assert_eq!(record.arrivals_at_downstream, record.tally.sent, "the workers and the downstream counted the same calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_policys_delays_are_its_own_decisions_to_the_nanosecond() {
    let scenario = scenario(
        "seed = 77
        [[jobs]]
        type = 'email'
        count = 12
        max_retries = 4
        [downstream]
        servers = 100
        queue = 100
        error_rate = 0.9
        latency = { kind = 'constant', value = '1ms' }
        client_timeout = '20s'
        [policy.none]
        kind = 'none'
        [policy.constant]
        kind = 'constant'
        delay = '7ms'
        jitter = 'proportional'
        jitter_share = 0.3
        [policy.linear]
        kind = 'linear'
        base = '3ms'
        step = '2ms'
        jitter = 'equal'
        [policy.exponential]
        kind = 'exponential'
        base = '3ms'
        factor = 1.7
        [policy.full]
        kind = 'exponential'
        base = '5ms'
        cap = '20ms'
        jitter = 'full'
        [policy.additive]
        kind = 'exponential'
        base = '2ms'
        jitter = 'additive'
        jitter_spread = '9ms'
        [policy.decorrelated]
        kind = 'exponential'
        base = '3ms'
        cap = '40ms'
        jitter = 'decorrelated'
        ",
    );
    let database = cluster::database().await;
    let plans = (0..scenario.policies.len()).map(|index| plan(&scenario, index, &database, &format!("simq_test_{index}")));
    let outcomes = join_all(plans.map(simq::real::run)).await;
    for (named, outcome) in scenario.policies.iter().zip(outcomes) {
        let outcome = outcome.unwrap();
        assert_eq!(outcome.breaches, [""; 0]);
        let mut retries = 0;
        for (job, attempts) in attempts_by_job(&outcome) {
            let mut last_delay = None;
            for attempt in attempts {
                let memory = Memory { retries: attempt.attempt - 1, max_retries: 4, last_delay, age: Duration::ZERO };
                let mut draw = scenario.seed.draw(Stream::Jitter, job, attempt.attempt);
                let fate = match named.policy.decide(&memory, &answer(&attempt), &mut draw) {
                    Decision::Complete => Fate::Completed,
                    Decision::Retry { after } => Fate::Retried(after),
                    Decision::Discard(why) => Fate::Discarded(why),
                };
                assert_eq!(attempt.fate, fate, "{}: job {job}, attempt {}", named.name, attempt.attempt);
                if let Fate::Retried(after) = fate {
                    (last_delay, retries) = (Some(after), retries + 1);
                }
            }
        }
        assert!(retries >= 12, "{}: {retries} retries", named.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_downstream_answers_503_until_its_window_ends() {
    let text =
        jobs(40, "") + HEALTHY + "client_timeout = '20s'\n" + &outage("at = '0s'\nlasts = '400ms'", "'unavailable'") + PATIENT;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let window = Window::starting(Duration::ZERO, ms(400));
    assert!(inside(&outcome, window).iter().all(|attempt| answer(attempt) == Answer::status(503)));
    assert!(outside(&outcome, window).iter().all(|attempt| answer(attempt) == Answer::Ok));
    assert_eq!(count(&outcome, Answer::Ok), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusing_downstream_is_not_reached_and_serves_on_the_same_port_again() {
    let arrival = "arrival = 'constant'\nrate = '200/s'";
    let text = jobs(120, arrival)
        + HEALTHY
        + "client_timeout = '20s'\n"
        + &outage("at = '100ms'\nlasts = '400ms'", "'refuse'")
        + PATIENT;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let window = Window::starting(ms(100), ms(400));
    // A call that is under way when the door closes is cut.
    let shut = |attempt: &Attempt| matches!(answer(attempt), Answer::Refused | Answer::Reset);
    assert!(inside(&outcome, window).iter().all(shut));
    let (ok, refused, cut) = (count(&outcome, Answer::Ok), count(&outcome, Answer::Refused), count(&outcome, Answer::Reset));
    assert_eq!((ok, ok + refused + cut), (120, outcome.record.attempts.len() as u64), "nothing else happened");
    assert!(refused > 0);
    let arrivals = outcome.record.arrivals_at_downstream;
    assert!((ok..=ok + cut).contains(&arrivals), "{arrivals} calls arrived, {ok} were served and {cut} cut");
    let before = outside(&outcome, window).iter().filter(|attempt| attempt.sent < window.from).count();
    assert!(before > 0, "it served before, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_hanging_downstream_time_out() {
    let text = jobs(30, "") + HEALTHY + "client_timeout = '150ms'\n" + &outage("at = '0s'\nlasts = '600ms'", "'hang'") + PATIENT;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let hung = inside(&outcome, Window::starting(Duration::ZERO, ms(600)));
    for attempt in &hung {
        assert_eq!(answer(attempt), Answer::TimedOut);
        assert!(took(attempt) >= ms(150), "{attempt:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_downstream_in_brownout_is_slower_and_fails_the_calls_it_must() {
    let mode = "'brownout'\nerror_rate = 0.5\nslowdown = 20";
    let text = jobs(60, "") + HEALTHY + "client_timeout = '20s'\n" + &outage("at = '0s'\nlasts = '600ms'", mode) + PATIENT;
    let scenario = scenario(&text);
    let outcome = play(&scenario).await;
    assert_all_completed(&outcome);
    let window = Window::starting(Duration::ZERO, ms(600));
    let slow = inside(&outcome, window);
    for attempt in &slow {
        assert!(took(attempt) >= ms(100), "20 times 5 ms: {attempt:?}");
        let fails = scenario.seed.draw(Stream::Fault, attempt.job, attempt.attempt).happens(0.5);
        assert_eq!(answer(attempt), if fails { Answer::status(500) } else { Answer::Ok });
    }
    assert!(slow.iter().any(|attempt| answer(attempt) == Answer::Ok));
    assert!(slow.iter().any(|attempt| answer(attempt) != Answer::Ok));
    assert!(outside(&outcome, window).iter().all(|attempt| answer(attempt) == Answer::Ok));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_heeds_retry_after_stays_away_from_a_rate_limit_as_long_as_it_is_asked_to() {
    let mode = "'rate-limit'\nrate = '10/s'\nburst = 5\nretry_after = '1s'";
    let policy = "[policy.heeding]\nkind = 'constant'\ndelay = '10ms'\njitter = 'full'\nretry_after = 'at-least'\n";
    let text = jobs(30, "") + HEALTHY + "client_timeout = '20s'\n" + &outage("at = '0s'\nlasts = '900ms'", mode) + policy;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let asked = Answer::Status { code: 429, retry_after: Some(Duration::from_secs(1)) };
    assert!(count(&outcome, asked) > 0, "the limit was met");
    for attempts in attempts_by_job(&outcome).values() {
        for pair in attempts.windows(2) {
            assert_eq!(answer(&pair[0]), asked);
            assert_eq!(pair[0].fate, Fate::Retried(Duration::from_secs(1)));
            assert!(pair[1].sent.since(pair[0].answered.unwrap()) >= Duration::from_secs(1), "{pair:?}");
        }
    }
    let passed = inside(&outcome, Window::starting(Duration::ZERO, ms(900)));
    assert!(passed.iter().filter(|attempt| answer(attempt) == Answer::Ok).count() <= 14, "5 at once, and 10 a second for 0.9 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permanent_failure_is_given_up_at_the_first_attempt() {
    let text = jobs(20, "permanent = 1.0") + HEALTHY + "client_timeout = '20s'\n" + PATIENT;
    let outcome = play(&scenario(&text)).await;
    assert_eq!((outcome.end, outcome.summary.counts.permanent), (End::Finished, 20));
    assert_eq!((outcome.record.attempts.len() as u64, count(&outcome, Answer::status(422))), (20, 20));
    for job in &outcome.record.jobs {
        assert_eq!((job.state, job.why, job.retries), (State::Discarded, Some(Why::Permanent), 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_wait_and_to_claim_brings_all_jobs_to_their_end() {
    for workers in [
        "wait = 'poll'\npoll = '40ms'",
        "wait = 'due'\npoll = '100ms'",
        "wait = 'listen'\npoll = '30s'",
        "claim = 'transaction'\nslots = 4\nconnections = 8\nwait = 'due'",
        "claim = 'transaction'\nslots = 4\nconnections = 3\nwait = 'listen'",
        "claim = 'transaction'\nslots = 4\nconnections = 8\nwait = 'poll'\npoll = '40ms'",
    ] {
        let arrival = "arrival = 'constant'\nrate = '200/s'";
        let downstream = HEALTHY.to_owned() + "error_rate = 0.3\nclient_timeout = '20s'\n";
        let text = jobs(60, arrival) + "[workers]\ncount = 2\n" + workers + "\n" + &downstream + PATIENT;
        let outcome = play(&scenario(&text)).await;
        assert_all_completed(&outcome);
        assert!(outcome.record.attempts.len() > 60, "{workers}: some were retried");
        assert!(outcome.record.attempts.iter().all(|attempt| attempt.fate != Fate::Lost), "{workers}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_the_horizon_cuts_off_are_counted_as_unfinished() {
    let policy = "[policy.slow]\nkind = 'constant'\ndelay = '30s'\n";
    let text = "horizon = '500ms'\n".to_owned() + &jobs(25, "") + HEALTHY + "error_rate = 1.0\n" + policy;
    let outcome = play(&scenario(&text)).await;
    assert_eq!(outcome.end, End::Horizon);
    let counts = outcome.summary.counts;
    assert_eq!((counts.unfinished, counts.completed, counts.discarded()), (25, 0, 0));
    assert!(outcome.record.jobs.iter().all(|job| !job.state.is_terminal() && job.finished.is_none()));
    assert!(outcome.record.jobs.iter().any(|job| job.state == State::Retryable));
    assert!(outcome.record.ended >= Instant::START + ms(500));
    assert_eq!((outcome.summary.makespan, outcome.summary.completion_p50), (None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_stopped_finishes_what_is_under_way_and_holds_nothing() {
    let text = jobs(500, "") + "[workers]\ncount = 2\nslots = 4\n" + HEALTHY + "client_timeout = '20s'\n" + PATIENT;
    let scenario = scenario(&text);
    let database = cluster::database().await;
    let (stopping, stop) = watch::channel(false);
    let mut plan = plan(&scenario, 0, &database, "simq_test");
    plan.stop = stop;
    let live = plan.live.clone();
    let stopper = async {
        eventually("the first completed jobs", async || (live.completed.load(Ordering::Relaxed) > 10).then_some(())).await;
        stopping.send(true).unwrap();
    };
    let (outcome, ()) = tokio::join!(simq::real::run(plan), stopper);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Stopped, &[][..]));
    let counts = outcome.summary.counts;
    assert!(counts.completed > 10 && counts.unfinished > 0, "{counts:?}");
    assert!(outcome.record.jobs.iter().all(|job| job.state != State::Running));
    assert!(outcome.record.attempts.iter().all(|attempt| attempt.settled.is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runs_in_one_database_meet_neither_each_other_nor_what_is_there() {
    let database = cluster::database().await;
    let theirs = "CREATE TABLE jobs (id int PRIMARY KEY, what text); INSERT INTO jobs VALUES (1, 'mine');
                  CREATE SCHEMA other; CREATE TABLE other.jobs (id int); CREATE SEQUENCE lease_tokens START 5";
    execute(&database, theirs).await;
    let before = inventory(&database).await;
    let text = |count| jobs(count, "") + HEALTHY + "error_rate = 0.3\nclient_timeout = '20s'\n" + PATIENT;
    let scenarios: [Scenario; 2] = [scenario(&text(80)), scenario(&text(110))];
    let plans = scenarios.iter().zip(["simq_one", "simq_two"]).map(|(scenario, schema)| plan(scenario, 0, &database, schema));
    for (outcome, count) in join_all(plans.map(simq::real::run)).await.into_iter().zip([80, 110]) {
        let outcome = outcome.unwrap();
        assert_eq!(outcome.breaches, [""; 0]);
        assert_all_completed(&outcome);
        assert_eq!(outcome.record.arrivals_at_downstream, outcome.record.tally.sent, "each called its own downstream");
        assert_eq!(outcome.record.jobs.len(), count);
    }
    assert_eq!(inventory(&database).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_cannot_be_set_up_says_so_and_takes_nothing_away() {
    let database = cluster::database().await;
    execute(&database, "CREATE SCHEMA simq_test; CREATE TABLE simq_test.jobs (id int)").await;
    let before = inventory(&database).await;
    let scenario = scenario(&(jobs(1, "") + HEALTHY + PATIENT));
    let error = simq::real::run(plan(&scenario, 0, &database, "simq_test")).await.unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
    assert_eq!(inventory(&database).await, before, "the schema was there before: it is somebody's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_tables_are_refused_leaves_no_schema() {
    let database = cluster::database().await;
    let refuse = "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
                      IF current_schema() LIKE 'simq%' THEN RAISE 'not in this house'; END IF;
                  END $$;
                  CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION refuse()";
    execute(&database, refuse).await;
    let before = inventory(&database).await;
    let scenario = scenario(&(jobs(1, "") + HEALTHY + PATIENT));
    let error = simq::real::run(plan(&scenario, 0, &database, "simq_test")).await.unwrap_err();
    assert!(error.to_string().contains("not in this house"), "{error}");
    assert_eq!(inventory(&database).await, before);
}

async fn execute(database: &PgConnectOptions, statements: &str) {
    let mut connection = PgConnection::connect_with(database).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
}

/// Every table, index, sequence and schema of the database that is not Postgres's own, and the rows of `public.jobs` if it is there.
async fn inventory(database: &PgConnectOptions) -> Vec<String> {
    let mut connection = PgConnection::connect_with(database).await.unwrap();
    let mut found: Vec<String> = sqlx::query_scalar(
        "SELECT nspname::text FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)' UNION ALL
         SELECT nspname || '.' || relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
         WHERE nspname !~ '^(pg_|information_schema)' ORDER BY 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    if found.iter().any(|name| name == "public.jobs") {
        found.extend(
            sqlx::query_scalar::<_, String>("SELECT jobs::text FROM public.jobs").fetch_all(&mut connection).await.unwrap(),
        );
    }
    found
}
