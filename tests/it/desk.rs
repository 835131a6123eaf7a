//! Small requests that come at the same time are served together, and each gets its own answer.

use std::collections::BTreeSet;

use futures_util::future::{join, join_all};
use simq::queue::{Claim, How, Settlement};

use crate::bench::{Bench, MINUTE, New};

fn complete(claims: &[Claim]) -> Vec<Settlement> {
    claims.iter().map(|claim| Settlement { job: claim.job, token: claim.token, how: How::Complete }).collect()
}

async fn bench(jobs: u64) -> Bench {
    let mut bench = Bench::new().await;
    bench.insert(&(1..=jobs).map(|id| New { id, priority: 0, max_retries: 3 }).collect::<Vec<_>>()).await;
    bench
}

#[tokio::test]
async fn claims_that_come_together_take_a_few_statements_and_make_a_lease_for_each() {
    let mut bench = bench(40).await;
    let store = bench.quick_store(4).await;
    let claimed = join_all((0..8).map(|worker| store.claim(worker, 4, MINUTE))).await;
    let claimed: Vec<Vec<Claim>> = claimed.into_iter().map(|claimed| claimed.unwrap().claims).collect();
    assert!(claimed.iter().all(|claims| claims.len() == 4), "{claimed:?}");
    let jobs: BTreeSet<u64> = claimed.iter().flatten().map(|claim| claim.job.0).collect();
    assert_eq!(jobs, (1..=32).collect());
    assert_eq!(
        bench.ask("SELECT count(DISTINCT worker) || ' of ' || count(*) FROM lease JOIN batch ON id = batch").await,
        "8 of 8"
    );
    assert!(store.transactions() < 8, "{}", store.transactions());
}

#[tokio::test]
async fn of_what_is_settled_together_with_claims_only_what_expired_is_lost() {
    let mut bench = bench(40).await;
    let (store, reaper) = (bench.quick_store(2).await, bench.quick_store(1).await);
    let mut held = Vec::new();
    for worker in 0..4 {
        held.push(store.claim(worker, 3, MINUTE).await.unwrap().claims);
    }
    bench.execute("UPDATE lease SET until = now() FROM batch WHERE id = batch AND worker = 2").await;
    assert_eq!(reaper.reap().await.unwrap(), (3, 0));
    let before = store.transactions();
    let settle = join_all(held.iter().map(|claims| {
        let store = &store;
        async move { store.settle(&complete(claims)).await.unwrap() }
    }));
    let claim = join_all((4..8).map(|worker| store.claim(worker, 2, MINUTE)));
    let (settled, claimed) = join(settle, claim).await;
    let lost: Vec<usize> = settled.iter().map(|settled| settled.lost.len()).collect();
    assert_eq!(lost, [0, 0, 3, 0]);
    assert!(settled.iter().all(|settled| settled.lost.len() + settled.settled.len() == 3));
    let jobs: BTreeSet<u64> = claimed.into_iter().flat_map(|claimed| claimed.unwrap().claims).map(|claim| claim.job.0).collect();
    assert_eq!(jobs.len(), 8, "everybody got two");
    assert!(store.transactions() - before <= 4, "{}", store.transactions() - before);
    assert_eq!(bench.ask("SELECT count(*) FROM jobs WHERE status = 'completed'").await, "9");
    assert_eq!(bench.ask("SELECT count(*) || ' ' || count(DISTINCT id) FROM jobs").await, "40 40");
}

#[tokio::test]
async fn a_part_of_a_batch_and_whole_ones_are_settled_together() {
    let mut bench = bench(12).await;
    let store = bench.quick_store(2).await;
    let held = join_all((0..4).map(|worker| store.claim(worker, 3, MINUTE))).await;
    let held: Vec<Vec<Claim>> = held.into_iter().map(|claimed| claimed.unwrap().claims).collect();
    let settle = |claims: Vec<Settlement>| {
        let store = &store;
        async move { store.settle(&claims).await.unwrap() }
    };
    let first = join_all([complete(&held[0]), complete(&held[1][..1]), complete(&held[2])].map(settle)).await;
    assert_eq!(first.iter().map(|settled| settled.settled.len()).collect::<Vec<_>>(), [3, 1, 3]);
    let rest = join_all([complete(&held[1][1..]), complete(&held[3])].map(settle)).await;
    assert_eq!(rest.iter().map(|settled| settled.settled.len()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(bench.ask("SELECT count(*) FROM jobs WHERE status = 'completed'").await, "12");
    assert_eq!(bench.ask("SELECT count(*) FROM lease").await, "0");
}
