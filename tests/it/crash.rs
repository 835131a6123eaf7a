//! Workers that die and connections that break: no job is lost, and none is done twice.

use std::collections::BTreeSet;
use std::time::Duration;

use simq::job::JobId;
use simq::real::End;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Executor, Row};

use crate::cluster;
use crate::play::{eventually, plan, scenario};

/// Jobs to keep a few workers busy for a second or two.
fn busy(workers: &str) -> String {
    format!(
        "[[jobs]]\ntype = 'email'\ncount = 300\narrival = 'constant'\nrate = '300/s'\nmax_retries = 30\n\
         [workers]\ncount = 4\nslots = 4\nconnections = 8\nlease = '1500ms'\n{workers}\n\
         [downstream]\nservers = 8\nqueue = 1000\nlatency = {{ kind = 'constant', value = '30ms' }}\nclient_timeout = '1s'\n\
         [policy.steady]\nkind = 'constant'\ndelay = '20ms'\n"
    )
}

/// A worker that claims in the run's own schema, with the run's own statement, and is never heard of again.
async fn claim_and_die(database: &PgConnectOptions, jobs: i64) -> BTreeSet<JobId> {
    let inside = database.clone().options([("search_path", "simq_test")]);
    let mut connection = PgConnection::connect_with(&inside).await.unwrap();
    let (mut stolen, mut batch) = (BTreeSet::new(), 0_i64);
    eventually("jobs to claim", async || {
        let statement = sqlx::query(include_str!("../../src/real/pg/claim_new.sql"));
        let lease_us = 200_000_i64;
        batch += 1;
        let statement =
            statement.bind(jobs - stolen.len() as i64).bind(lease_us).bind(i32::MIN).bind(0_i64).bind(batch).bind(99_i32);
        let claimed = statement.fetch_all(&mut connection).await.unwrap_or_default();
        stolen.extend(claimed.iter().map(|row| JobId(row.get::<i64, _>("id") as u64)));
        (stolen.len() as i64 == jobs).then_some(())
    })
    .await;
    stolen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_jobs_of_a_worker_that_died_are_taken_up_by_others_and_end() {
    let scenario = scenario(&busy(""));
    let database = cluster::database().await;
    let (outcome, stolen) =
        tokio::join!(simq::real::run(plan(&scenario, 0, &database, "simq_test")), claim_and_die(&database, 7));
    let outcome = outcome.unwrap();
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Finished, &[][..]));
    assert_eq!(outcome.summary.counts.completed, 300);
    assert!(outcome.record.tally.returned >= 7, "the dead worker's jobs went back: {}", outcome.record.tally.returned);
    for job in outcome.record.jobs.iter().filter(|job| stolen.contains(&job.job)) {
        let attempts: Vec<u32> = outcome.record.attempts.iter().filter(|a| a.job == job.job).map(|a| a.attempt).collect();
        assert!(!attempts.contains(&1), "the first attempt of job {} died: {attempts:?}", job.job);
        assert!(job.retries >= 1, "and cost a retry");
    }
}

/// Cuts every connection of the run whenever that many jobs have ended, and says how many it cut.
async fn cut_connections(database: &PgConnectOptions, ended: impl Fn() -> u64, at: &[u64]) -> u64 {
    let mut connection = PgConnection::connect_with(database).await.unwrap();
    let mut cut = 0;
    for &jobs in at {
        eventually("jobs to end", async || (ended() >= jobs).then_some(())).await;
        let statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                         WHERE datname = current_database() AND pid <> pg_backend_pid()";
        cut += connection.fetch_all(statement).await.unwrap().len() as u64;
    }
    cut
}

async fn survives_broken_connections(text: &str, cut_at: &[u64]) {
    let scenario = scenario(text);
    let database = cluster::database().await;
    let plan = plan(&scenario, 0, &database, "simq_test");
    let live = plan.live.clone();
    let cutter = cut_connections(&database, || live.ended(), cut_at);
    let limit = Duration::from_secs(60);
    let (outcome, cut) = tokio::join!(tokio::time::timeout(limit, simq::real::run(plan)), cutter);
    let outcome = outcome.expect("it ends").unwrap();
    assert!(cut >= 8, "{cut} connections were cut");
    assert!(outcome.record.tally.store_failures > 0 || outcome.record.tally.lost > 0, "the workers noticed");
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Finished, &[][..]));
    assert_eq!(outcome.summary.counts.completed, scenario.job_count(), "{:?}", outcome.summary.counts);
    let mut connection = PgConnection::connect_with(&database).await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'simq%'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(left, 0, "the schema is gone all the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_in_mid_run_lose_no_job_under_leases() {
    survives_broken_connections(&busy("wait = 'listen'\npoll = '100ms'"), &[10, 60, 120, 200]).await;
}

/// Nothing else would wake them before the horizon: the subscription must be made anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_wait_for_news_hear_of_it_again_after_the_connections_were_cut() {
    // Idle between two arrivals.
    let idle = busy("wait = 'listen'\npoll = '10m'").replace("300", "150").replace("'30ms'", "'1ms'");
    survives_broken_connections(&("horizon = '20s'\n".to_owned() + &idle), &[5, 15]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_in_mid_run_lose_no_job_claimed_in_transactions() {
    survives_broken_connections(&busy("claim = 'transaction'\nwait = 'due'\npoll = '50ms'"), &[10, 60, 120, 200]).await;
}
