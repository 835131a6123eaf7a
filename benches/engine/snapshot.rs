//! Draining while somebody elsewhere holds an old snapshot, so that no dead row can be vacuumed.

use simq::queue::ClaimMode;
use simq::real::drain;

use super::place::{Place, connect, crew, fill, run, settle_in, succeed};
use super::tell::Rounds;

const ROUNDS: usize = 3;
const JOBS: u64 = 200_000;

pub async fn measure(place: &Place) {
    let (mut free, mut held) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        one(place, &mut free, false).await;
        one(place, &mut held, true).await;
    }
    println!("\nan old snapshot held all the while: {ROUNDS} rounds in turns, medians");
    free.tell("engine, batches of 100", None);
    held.tell("engine, batches of 100, snapshot held", Some(("without it", &free)));
}

async fn one(place: &Place, rounds: &mut Rounds, hold: bool) {
    let schema = place.schema().await;
    let (mut connection, mut holder) = (connect(&schema).await, connect(&schema).await);
    run(&mut connection, &fill(1, JOBS)).await;
    settle_in(&mut connection).await;
    if hold {
        run(&mut holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM lease").await;
    }
    let (drained, spent) = place.spend(drain(&schema, crew(2, 100, ClaimMode::Lease, succeed), JOBS)).await;
    assert_eq!(drained.expect("it drains").tally.completed, JOBS, "every job is completed");
    rounds.add(JOBS, spent);
    drop(holder);
    schema.drop().await.expect("it drops");
}
