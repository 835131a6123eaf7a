//! Real runs: Postgres, workers and an HTTP service, for about a second each. Nothing is said of how long things take.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use simq::call::Outcome as Answer;
use simq::job::{Memory, State};
use simq::metrics::{Attempt, Fate};
use simq::policy::{Decision, Why};
use simq::real::End;
use simq::rng::Stream;
use simq::scenario::Scenario;
use simq::time::Instant;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};
use tokio::sync::watch;

use crate::cluster;
use crate::play::{
    HEALTHY, PATIENT, answer, assert_all_completed, attempts_by_job, count, eventually, jobs, ms, plan, play, scenario,
};

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
