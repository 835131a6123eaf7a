//! Jobs per second from being put in to being completed, both at once on one server.

use simq::queue::ClaimMode;
use simq::real::drain;
use simq::real::pg::{Batch, enlist, insert};

use super::place::{Place, connect, crew, settle_in, succeed};
use super::putting::jobs;
use super::raw;
use super::tell::Rounds;

const ROUNDS: usize = 3;
const JOBS: u64 = 100_000;
const BATCH: u64 = 500;

pub async fn measure(place: &Place) {
    let (mut ours, mut limit) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        engine(place, &mut ours).await;
        bare(place, &mut limit).await;
    }
    println!("\nlifecycle: put in, claimed, completed; {ROUNDS} rounds in turns, medians");
    limit.tell("raw, 2 clients, batches of 500", None);
    ours.tell("engine, 1 producer and 2 workers", Some(("raw", &limit)));
}

async fn engine(place: &Place, rounds: &mut Rounds) {
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    settle_in(&mut connection).await;
    let (groups, jobs) = jobs(JOBS);
    let producer = enlist(&mut connection).await.expect("it enlists");
    let produce = async {
        for (jobs, number) in jobs.chunks(BATCH as usize).zip(1..) {
            let batch = Batch { producer, number, jobs, groups: &groups, max_retries: None };
            insert(&mut connection, batch, ClaimMode::Lease).await.expect("it puts in");
        }
    };
    let work = drain(&schema, crew(2, BATCH as u32, ClaimMode::Lease, succeed), JOBS);
    let ((_, drained), spent) = place.spend(async { tokio::join!(produce, work) }).await;
    assert_eq!(drained.expect("it drains").tally.completed, JOBS, "every job is completed");
    rounds.add(JOBS, spent);
    drop(connection);
    schema.drop().await.expect("it drops");
}

async fn bare(place: &Place, rounds: &mut Rounds) {
    let schema = place.schema().await;
    let mut connection = raw::prepare(&schema).await;
    settle_in(&mut connection).await;
    let (done, spent) = place.spend(raw::lifecycle(&schema, 2, BATCH as i64, (JOBS / BATCH / 2) as i64)).await;
    rounds.add(done, spent);
    schema.drop().await.expect("it drops");
}
