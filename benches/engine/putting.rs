//! Jobs per second into the queue: by one statement, and by COPY.

use std::sync::Arc;

use simq::job::JobId;
use simq::real::pg::{Batch, copy, enlist, state};
use simq::time::Instant;
use simq::workload::{Arrival, Group, Job};

use super::place::{Place, connect, settle_in};
use super::raw;
use super::tell::Rounds;

const ROUNDS: usize = 3;
const JOBS: u64 = 100_000;
const BATCHES: [usize; 3] = [100, 200, 1000];

pub async fn measure(place: &Place) {
    let mut stated: Vec<Rounds> = vec![Rounds::default(); BATCHES.len()];
    let (mut copied, mut limit) = (stated.clone(), Rounds::default());
    for _ in 0..ROUNDS {
        for (index, batch) in BATCHES.into_iter().enumerate() {
            one(place, &mut stated[index], batch, false).await;
            one(place, &mut copied[index], batch, true).await;
        }
        bare(place, &mut limit).await;
    }
    println!("\nputting in, 1 producer: {ROUNDS} rounds in turns, medians");
    limit.tell("raw statement, batches of 1000", None);
    for (index, batch) in BATCHES.into_iter().enumerate() {
        stated[index].tell(&format!("one statement, batches of {batch}"), Some(("raw", &limit)));
        copied[index].tell(&format!("COPY, batches of {batch}"), Some(("the statement", &stated[index])));
    }
}

/// Jobs of one kind, and the kind.
pub fn jobs(count: u64) -> (Arc<[Group]>, Vec<Job>) {
    let group = Group {
        kind: "email".into(),
        count,
        arrival: Arrival::AtOnce,
        at: Default::default(),
        priority: 0,
        permanent: 0.0,
        max_retries: 5,
    };
    let job = |id| Job { at: Instant::START, id: JobId(id), group: 0, malformed: false };
    (Arc::new([group]), (1..=count).map(job).collect())
}

async fn one(place: &Place, rounds: &mut Rounds, batch: usize, by_copy: bool) {
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    settle_in(&mut connection).await;
    let (groups, jobs) = jobs(JOBS);
    let producer = enlist(&mut connection).await.expect("it enlists");
    let ((), spent) = place
        .spend(async {
            for (jobs, number) in jobs.chunks(batch).zip(1..) {
                let batch = Batch { producer, number, jobs, groups: &groups, max_retries: None };
                let put = if by_copy { copy(&mut connection, batch).await } else { state(&mut connection, batch).await };
                put.expect("it puts in");
            }
        })
        .await;
    rounds.add(JOBS, spent);
    drop(connection);
    schema.drop().await.expect("it drops");
}

async fn bare(place: &Place, rounds: &mut Rounds) {
    let schema = place.schema().await;
    let mut connection = raw::prepare(&schema).await;
    settle_in(&mut connection).await;
    let ((), spent) = place.spend(raw::put_in(&mut connection, JOBS as i64, 1000)).await;
    rounds.add(JOBS, spent);
    drop(connection);
    schema.drop().await.expect("it drops");
}
