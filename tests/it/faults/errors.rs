//! Statements that Postgres gives up by itself: deadlocks and serialization failures are tried again, and settled once.

use std::time::Duration;

use simq::job::JobId;
use simq::queue::{How, Settlement};
use simq::real::End;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::bench::{Bench, MINUTE, New};
use crate::cluster;
use crate::play::{eventually, plan, scenario};

/// The engine waits for a lease that somebody else has locked, and somebody else waits for one that the engine has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_ends_one_statement_and_not_the_settlement() {
    let mut bench = Bench::new().await;
    let store = bench.store(simq::queue::ClaimMode::Lease, 2).await;
    bench.insert(&[1, 2].map(|id| New { id, priority: 0, max_retries: 3 })).await;
    let mut settlements = Vec::new();
    for _ in 0..2 {
        let claim = store.claim(0, 1, MINUTE).await.unwrap().claims.remove(0);
        settlements.push(Settlement { job: claim.job, token: claim.token, how: How::Complete });
    }
    let mut other = PgConnection::connect_with(bench.schema.options()).await.unwrap();
    other.execute("BEGIN; SET LOCAL deadlock_timeout = '1min'").await.unwrap();
    other.execute("SELECT FROM lease ORDER BY until DESC LIMIT 1 FOR UPDATE").await.unwrap();
    let store = std::sync::Arc::new(store);
    let (settling, sent) = (store.clone(), settlements.clone());
    let settle = tokio::spawn(async move { settling.settle(&sent).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    eventually("the settlement to wait", async || (bench.ask(waiting).await == "1").then_some(())).await;
    other.execute("SELECT FROM lease ORDER BY until LIMIT 1 FOR UPDATE").await.unwrap();
    let error = settle.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("deadlock detected"), "it was the victim: {error}");
    other.execute("ROLLBACK").await.unwrap();
    for _ in 0..2 {
        let settled = store.settle(&settlements).await.unwrap();
        assert_eq!((settled.settled.len(), settled.lost.len()), (2, 0), "sent again, and once more");
    }
    assert_eq!((bench.job(1).await.as_str(), bench.job(2).await.as_str()), ("completed 0", "completed 0"));
    assert_eq!(settlements[0].job, JobId(1));
    store.close().await;
}

/// Every statement that changes leases fails now and then, with the code that the database would give.
async fn survives_errors(code: &str) {
    let scenario = scenario(
        "[[jobs]]\ntype = 'email'\ncount = 150\nmax_retries = 30\narrival = 'constant'\nrate = '300/s'\n\
         [workers]\ncount = 3\nslots = 4\nconnections = 4\nlease = '30s'\nwait = 'due'\npoll = '50ms'\n\
         [downstream]\nservers = 100\nerror_rate = 0.2\nlatency = { kind = 'constant', value = '5ms' }\nclient_timeout = '1s'\n\
         [policy.steady]\nkind = 'constant'\ndelay = '10ms'\n",
    );
    let database = cluster::database().await;
    // A sequence counts on when a transaction is rolled back.
    let trigger = format!(
        "SET search_path TO simq_test; CREATE SEQUENCE faults;
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('simq_test.faults') % 9 = 0 THEN RAISE EXCEPTION 'planted' USING ERRCODE = '{code}'; END IF;
             RETURN NULL; END $$;
         CREATE TRIGGER fail AFTER INSERT OR DELETE ON lease FOR EACH STATEMENT EXECUTE FUNCTION fail()"
    );
    let plant = async {
        let mut connection = PgConnection::connect_with(&database).await.unwrap();
        eventually("the queue's tables", async || connection.execute(AssertSqlSafe(trigger.clone())).await.ok()).await;
    };
    let (outcome, ()) = tokio::join!(simq::real::run(plan(&scenario, 0, &database, "simq_test")), plant);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Finished, &[][..]));
    assert_eq!(outcome.summary.counts.completed, 150);
    assert!(outcome.summary.store_failures >= 5, "{} statements failed", outcome.summary.store_failures);
    assert_eq!((outcome.summary.lost_leases, outcome.summary.repeated_calls), (0, 0), "what was rolled back was sent again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serialization_failures_are_tried_again() {
    survives_errors("40001").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlocks_in_mid_run_are_tried_again() {
    survives_errors("40P01").await;
}

/// A database whose default is SERIALIZABLE does not change how the engine's statements run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_sets_its_own_isolation() {
    let scenario = scenario(
        "[[jobs]]\ntype = 'email'\ncount = 200\n[workers]\ncount = 4\nslots = 4\n\
         [downstream]\nservers = 100\nlatency = { kind = 'constant', value = '2ms' }\n[policy.none]\nkind = 'none'\n",
    );
    let database = cluster::database().await;
    let mut connection = PgConnection::connect_with(&database).await.unwrap();
    let name = database.get_database().unwrap();
    let strict = format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'");
    connection.execute(AssertSqlSafe(strict)).await.unwrap();
    let outcome = simq::real::run(plan(&scenario, 0, &database, "simq_test")).await.unwrap();
    assert_eq!((outcome.summary.counts.completed, outcome.summary.store_failures, &outcome.breaches[..]), (200, 0, &[][..]));
    assert!(outcome.record.ended.since_start() < Duration::from_secs(60));
}
