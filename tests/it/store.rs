//! What the queue promises, kept by Postgres.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use simq::job::JobId;
use simq::policy::Why;
use simq::queue::{Claim, ClaimMode, How, Settled, Settlement};
use simq::real::pg::Store;

use crate::bench::{Bench, MINUTE, New};
use crate::play::eventually;

fn new(id: u64) -> New {
    New { id, priority: 0, max_retries: 3 }
}

fn settlement(claim: &Claim, how: How) -> Settlement {
    Settlement { job: claim.job, token: claim.token, how }
}

fn retry(after: Duration) -> How {
    How::Retry { after, reason: "status-503".into() }
}

async fn settle(store: &Store, settlements: &[Settlement]) -> Settled {
    store.settle(settlements).await.unwrap()
}

async fn claim(store: &Store, limit: u32) -> Vec<Claim> {
    store.claim(0, limit, MINUTE).await.unwrap().claims
}

/// A bench with one job, and its first claim.
async fn claimed(max_retries: u32) -> (Bench, Store, Claim) {
    let mut bench = Bench::new().await;
    bench.insert(&[New { id: 1, priority: 0, max_retries }]).await;
    let store = bench.store(ClaimMode::Lease, 1).await;
    let first = claim(&store, 1).await.remove(0);
    (bench, store, first)
}

#[tokio::test]
async fn claims_by_priority_then_number_new_jobs_and_due_retries_alike() {
    let mut bench = Bench::new().await;
    bench.insert(&[new(1), new(2), New { id: 3, priority: 9, ..new(3) }]).await;
    let store = bench.store(ClaimMode::Lease, 1).await;
    let first = claim(&store, 2).await;
    settle(&store, &first.iter().map(|claim| settlement(claim, retry(MINUTE))).collect::<Vec<_>>()).await;
    bench.pass(2 * MINUTE).await;
    bench.insert(&[New { id: 4, priority: -9, ..new(4) }, New { id: 5, priority: 9, ..new(5) }, new(6)]).await;
    let order: Vec<u64> = claim(&store, 10).await.iter().map(|claim| claim.job.0).collect();
    assert_eq!(order, [3, 5, 1, 2, 6, 4]);
}

#[tokio::test]
async fn a_claim_never_takes_more_than_its_limit_and_takes_what_is_left() {
    let mut bench = Bench::new().await;
    bench.insert(&(1..=5).map(new).collect::<Vec<_>>()).await;
    let store = bench.quick_store(1).await;
    let mut sizes = Vec::new();
    for _ in 0..4 {
        sizes.push(claim(&store, 2).await.len());
    }
    assert_eq!(sizes, [2, 2, 1, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_claimers_at_once_never_take_a_job_twice_and_miss_none() {
    const JOBS: usize = 2_000;
    let mut bench = Bench::new().await;
    bench.insert(&(1..=JOBS as u64).map(new).collect::<Vec<_>>()).await;
    let store = Arc::new(bench.quick_store(8).await);
    let taken = Arc::new(AtomicUsize::new(0));
    let mut claimers = tokio::task::JoinSet::new();
    for worker in 0..16 {
        let (store, taken) = (store.clone(), taken.clone());
        claimers.spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..JOBS {
                let claims = store.claim(worker, 17, MINUTE).await.unwrap().claims;
                assert!(claims.len() <= 17);
                taken.fetch_add(claims.len(), Ordering::Relaxed);
                mine.extend(claims.into_iter().map(|claim| claim.job));
                if taken.load(Ordering::Relaxed) >= JOBS {
                    break;
                }
            }
            mine
        });
    }
    let shares = claimers.join_all().await;
    assert!(shares.iter().filter(|share| !share.is_empty()).count() > 1, "they met");
    let all: Vec<JobId> = shares.into_iter().flatten().collect();
    let different: BTreeSet<JobId> = all.iter().copied().collect();
    assert_eq!((all.len(), different.len()), (JOBS, JOBS));
}

#[tokio::test]
async fn a_settle_under_a_lease_that_expired_and_was_claimed_again_is_lost_and_changes_nothing() {
    let (mut bench, store, old) = claimed(3).await;
    bench.pass(MINUTE).await;
    assert_eq!(store.reap().await.unwrap(), (1, 0));
    let new = claim(&store, 1).await.remove(0);
    let before = bench.ask("SELECT jobs FROM jobs").await;
    let discard = How::Discard { why: Why::Permanent, reason: "status-422".into() };
    for how in [How::Complete, retry(MINUTE), discard, How::Release] {
        let answer = settle(&store, &[settlement(&old, how)]).await;
        assert_eq!((answer.lost, answer.settled), (vec![old.token], vec![]));
    }
    assert_eq!(store.extend(&[(old.job, old.token)], MINUTE).await.unwrap(), [old.token]);
    assert_eq!(bench.ask("SELECT jobs FROM jobs").await, before);
    assert_eq!(settle(&store, &[settlement(&new, How::Complete)]).await.settled, [new.token]);
    assert_eq!(bench.job(1).await, "completed 1");
}

#[tokio::test]
async fn a_settlement_that_is_sent_again_is_carried_out_once() {
    let discard = How::Discard { why: Why::Exhausted, reason: "status-503".into() };
    for how in [How::Complete, retry(MINUTE), retry(Duration::ZERO), discard, How::Release] {
        let (mut bench, store, claim) = claimed(3).await;
        let batch = [settlement(&claim, how)];
        let first = store.settle(&batch).await.unwrap();
        let row = bench.ask("SELECT jobs FROM jobs").await;
        assert_eq!(store.settle(&batch).await.unwrap(), first);
        assert_eq!(first.settled, [claim.token]);
        assert_eq!(bench.ask("SELECT jobs FROM jobs").await, row, "{batch:?}");
    }
}

/// One statement settles all, at one moment of the server's clock: so a microsecond's difference in delay is one in the table.
#[tokio::test]
async fn a_delay_is_added_to_the_databases_clock_to_the_microsecond() {
    let mut bench = Bench::new().await;
    bench.insert(&(0..20).map(new).collect::<Vec<_>>()).await;
    let store = bench.store(ClaimMode::Lease, 1).await;
    let delay = |claim: &Claim| Duration::from_micros(1_234_567 + claim.job.0);
    let claims = claim(&store, 20).await;
    let batch: Vec<Settlement> = claims.iter().map(|claim| settlement(claim, retry(delay(claim)))).collect();
    let before = bench.ask("SELECT clock_timestamp()").await;
    assert_eq!(settle(&store, &batch).await.settled.len(), 20);
    let after = bench.ask("SELECT clock_timestamp()").await;
    let apart = "SELECT array_agg(extract(microseconds FROM schedule_at - first)::int ORDER BY id) \
                 FROM jobs, (SELECT min(schedule_at) AS first FROM jobs) AS least";
    let expected: Vec<String> = (0..20).map(|id| id.to_string()).collect();
    assert_eq!(bench.ask(apart).await, format!("{{{}}}", expected.join(",")));
    let within = format!(
        "SELECT bool_and(schedule_at - last_delay_ns / 1000 * interval '1 microsecond' BETWEEN '{before}' AND '{after}') FROM jobs"
    );
    assert_eq!(bench.ask(&within).await, "true");
}

#[tokio::test]
async fn a_delay_between_two_microseconds_is_never_cut_short_and_is_kept_to_the_nanosecond() {
    let mut bench = Bench::new().await;
    bench.insert(&[new(1), new(2)]).await;
    let store = bench.store(ClaimMode::Lease, 1).await;
    let claims = claim(&store, 2).await;
    let delays = [Duration::from_nanos(60_000_000_000), Duration::from_nanos(60_000_000_001)];
    let batch: Vec<Settlement> = claims.iter().zip(delays).map(|(claim, delay)| settlement(claim, retry(delay))).collect();
    settle(&store, &batch).await;
    let apart = bench.ask("SELECT extract(microseconds FROM max(schedule_at) - min(schedule_at))::int FROM jobs").await;
    assert_eq!(apart, "1");
    bench.pass(2 * MINUTE).await;
    let kept: Vec<Option<Duration>> = claim(&store, 2).await.iter().map(|claim| claim.memory.last_delay).collect();
    assert_eq!(kept, delays.map(Some));
}

#[tokio::test]
async fn a_retry_is_claimed_when_it_is_due_and_not_before() {
    let (mut bench, store, first) = claimed(3).await;
    settle(&store, &[settlement(&first, retry(2 * MINUTE))]).await;
    bench.pass(MINUTE).await;
    let early = store.claim(0, 1, MINUTE).await.unwrap();
    assert!(early.claims.is_empty());
    assert!(early.next_due.is_some_and(|due| due <= MINUTE && due > MINUTE / 2), "{:?}", early.next_due);
    bench.pass(MINUTE).await;
    let again = claim(&store, 1).await.remove(0);
    assert_eq!((again.memory.attempt(), again.memory.last_delay), (2, Some(2 * MINUTE)));
    assert!(again.memory.age >= 2 * MINUTE && again.lag < MINUTE, "{again:?}");
}

#[tokio::test]
async fn a_claim_that_expires_costs_a_retry_and_the_last_one_ends_the_job() {
    let (mut bench, store, first) = claimed(1).await;
    assert_eq!(first.memory.attempt(), 1);
    assert_eq!(store.reap().await.unwrap(), (0, 0), "not before its time");
    bench.pass(MINUTE).await;
    assert_eq!(store.reap().await.unwrap(), (1, 0));
    assert_eq!(bench.job(1).await, "available 1");
    assert_eq!(claim(&store, 1).await.remove(0).memory.attempt(), 2);
    bench.pass(MINUTE).await;
    assert_eq!(store.reap().await.unwrap(), (0, 1));
    assert_eq!(bench.job(1).await, "discarded 1 exhausted");
    assert_eq!(bench.ask("SELECT failure FROM jobs").await, "lease expired");
}

#[tokio::test]
async fn an_extended_lease_lives_on_from_the_moment_of_its_extension() {
    let (mut bench, store, held) = claimed(3).await;
    bench.pass(MINUTE / 2).await;
    assert_eq!(store.extend(&[(held.job, held.token)], 2 * MINUTE).await.unwrap(), []);
    bench.pass(MINUTE).await;
    assert_eq!(store.reap().await.unwrap(), (0, 0));
    bench.pass(MINUTE).await;
    assert_eq!(store.reap().await.unwrap(), (1, 0));
    assert_eq!(store.extend(&[(held.job, held.token)], MINUTE).await.unwrap(), [held.token], "too late");
}

/// Claims that go on from where the last one was pass over what came in before it only for so long, and never lose it.
#[tokio::test]
async fn a_job_of_higher_priority_and_a_retry_are_not_passed_over_for_ever() {
    let mut bench = Bench::new().await;
    bench.insert(&(1..=40).map(new).collect::<Vec<_>>()).await;
    let store = bench.quick_store(1).await;
    let first = claim(&store, 2).await;
    settle(&store, &[settlement(&first[0], retry(Duration::ZERO))]).await;
    bench.insert(&[New { id: 41, priority: 9, ..new(41) }]).await;
    let mut order = Vec::new();
    while order.len() < 40 {
        order.extend(claim(&store, 2).await.iter().map(|claim| claim.job.0));
    }
    assert_eq!(order[..2], [1, 3], "a settled retry makes the next claim look at the retries");
    order.sort_unstable();
    let all: Vec<u64> = (1..=41).filter(|id| *id != 2).collect();
    assert_eq!(order, all);
}

#[tokio::test]
async fn a_discarded_job_keeps_the_reason() {
    let (mut bench, store, first) = claimed(3).await;
    let discard = How::Discard { why: Why::Permanent, reason: "status-422".into() };
    settle(&store, &[settlement(&first, discard)]).await;
    assert_eq!(bench.job(1).await, "discarded 0 permanent");
    assert_eq!(bench.ask("SELECT failure FROM jobs").await, "status-422");
}

#[tokio::test]
async fn a_job_claimed_in_a_transaction_is_nobody_elses_while_it_is_open() {
    let mut bench = Bench::new().await;
    bench.insert_for(ClaimMode::Transaction, &[new(1), new(2)]).await;
    let holder = bench.store(ClaimMode::Transaction, 2).await;
    let other = bench.store(ClaimMode::Transaction, 1).await;
    let leaser = bench.store(ClaimMode::Lease, 1).await;
    let first = claim(&holder, 10).await;
    assert_eq!(first.len(), 1, "one job a transaction");
    let second = claim(&other, 10).await;
    assert_eq!((first[0].job, second[0].job), (JobId(1), JobId(2)));
    assert!(claim(&leaser, 10).await.is_empty());
    assert_eq!(bench.job(1).await, "available 0", "nothing is committed yet");
    assert_eq!(settle(&holder, &[settlement(&first[0], How::Complete)]).await.settled, [first[0].token]);
    assert_eq!(bench.job(1).await, "completed 0");
    settle(&other, &[settlement(&second[0], retry(MINUTE))]).await;
    assert_eq!(bench.job(2).await, "retryable 1");
}

#[tokio::test]
async fn a_connection_that_is_cut_gives_its_transactions_job_back() {
    let mut bench = Bench::new().await;
    bench.insert_for(ClaimMode::Transaction, &[new(1)]).await;
    let holder = bench.store(ClaimMode::Transaction, 1).await;
    let held = claim(&holder, 1).await.remove(0);
    let other = bench.store(ClaimMode::Transaction, 1).await;
    assert!(claim(&other, 1).await.is_empty());
    bench.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()").await;
    let taken = eventually("the job to come back", async || claim(&other, 1).await.pop()).await;
    assert_eq!(taken.memory.attempt(), 1, "as if it had never been claimed");
    let late = settle(&holder, &[settlement(&held, How::Complete)]).await;
    assert_eq!(late.lost, [held.token]);
    assert_eq!(settle(&other, &[settlement(&taken, How::Complete)]).await.settled, [taken.token]);
    assert_eq!(bench.job(1).await, "completed 0");
    bench.insert_for(ClaimMode::Transaction, &[new(2)]).await;
    let again = eventually("the store to open a new connection", async || holder.claim(0, 1, MINUTE).await.ok()).await;
    assert_eq!(again.claims.len(), 1);
}

#[tokio::test]
async fn a_store_that_is_closed_gives_its_transactions_jobs_back() {
    let mut bench = Bench::new().await;
    bench.insert_for(ClaimMode::Transaction, &[new(1)]).await;
    let holder = bench.store(ClaimMode::Transaction, 1).await;
    assert_eq!(claim(&holder, 1).await.len(), 1);
    holder.close().await;
    let other = bench.store(ClaimMode::Transaction, 1).await;
    eventually("the job to come back", async || claim(&other, 1).await.pop()).await;
}

#[tokio::test]
async fn jobs_that_are_copied_in_are_put_in_once_and_like_others() {
    let mut bench = Bench::new().await;
    let many: Vec<New> = (1..=500).map(|id| New { priority: (id % 3) as i16, ..new(id) }).collect();
    bench.copy(&many).await;
    bench.restart();
    bench.copy(&many).await;
    let store = bench.quick_store(1).await;
    let first = claim(&store, 1).await.remove(0);
    assert_eq!((first.job, &*first.kind, &*first.payload), (JobId(2), "email", "{\"to\":\"customer-2@example.com\"}"));
    assert_eq!(bench.ask("SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || sum(priority) FROM jobs").await, "500 500 501");
}

#[tokio::test]
async fn the_tables_refuse_what_no_job_can_be() {
    let mut bench = Bench::new().await;
    bench.insert(&[new(1)]).await;
    for (statement, constraint) in [
        ("UPDATE ready SET max_retries = -1", "retries_within_bounds"),
        ("INSERT INTO finished VALUES (now(), 1, 'running')", "known_status"),
        ("INSERT INTO finished VALUES (now(), 1, 'completed', 'exhausted')", "discarded_means_why"),
        ("INSERT INTO finished VALUES (now(), 1, 'discarded', 'tired')", "known_why"),
        (
            "INSERT INTO finished VALUES (now(), 1, 'discarded', 'exhausted', '{1, 2}', NULL, '{status-503}')",
            "a_failure_for_each",
        ),
        ("INSERT INTO batch VALUES (1, 0, '{}')", "batches_hold_jobs"),
        ("INSERT INTO lease VALUES (1, now(), 2, '{7, 8}')", "leases_hold_jobs"),
    ] {
        let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut bench.connection).await.unwrap_err();
        assert_eq!(refused.as_database_error().and_then(|error| error.constraint()), Some(constraint), "{statement}");
    }
}
