//! Jobs per second out of a full queue, no-op handler, leases and fencing on, every job's end recorded.

use simq::queue::ClaimMode;
use simq::real::drain;

use super::place::{Place, connect, crew, fail_a_fifth, fill, run, settle_in, succeed};
use super::raw;
use super::tell::Rounds;

const ROUNDS: usize = 3;
/// Clients and jobs per claim: few clients and large batches win on two cores.
const SHAPES: [(u32, u32, u64); 4] = [(2, 500, 200_000), (2, 100, 100_000), (4, 10, 20_000), (8, 1, 6_000)];

pub async fn measure(place: &Place) {
    let mut ours: Vec<Rounds> = vec![Rounds::default(); SHAPES.len()];
    let mut limit = ours.clone();
    let (mut failing, mut single, mut article) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        for (index, (clients, batch, jobs)) in SHAPES.into_iter().enumerate() {
            engine(place, &mut ours[index], (clients, batch, jobs), succeed).await;
            bare(place, &mut limit[index], (clients, batch, jobs)).await;
        }
        let (clients, batch, jobs) = SHAPES[0];
        engine(place, &mut failing, (clients, batch, jobs), fail_a_fifth).await;
        singly(place, &mut single).await;
        articles(place, &mut article).await;
    }
    println!("\ndrain: {ROUNDS} rounds in turns, medians");
    for (index, (clients, batch, _)) in SHAPES.into_iter().enumerate() {
        limit[index].tell(&format!("raw lease rows, {clients} clients, batches of {batch}"), None);
        ours[index].tell(&format!("engine, {clients} workers, batches of {batch}"), Some(("raw lease rows", &limit[index])));
    }
    failing.tell("engine, batches of 500, 20 % retried once", Some(("its plain drain", &ours[0])));
    single.tell("raw single claims, 8 clients", None);
    ours[3].tell("engine, 8 workers, batches of 1", Some(("raw single claims", &single)));
    article.tell("the article's claim, 8 workers", Some(("raw single claims", &single)));
}

async fn engine(
    place: &Place,
    rounds: &mut Rounds,
    shape: (u32, u32, u64),
    handler: fn(&simq::worker::Request) -> simq::call::Outcome,
) {
    let (clients, batch, jobs) = shape;
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    run(&mut connection, &fill(1, jobs)).await;
    settle_in(&mut connection).await;
    let crew = crew(clients, batch, ClaimMode::Lease, handler);
    let (drained, spent) = place.spend(drain(&schema, crew, jobs)).await;
    let drained = drained.expect("the engine drains");
    assert_eq!(drained.tally.completed, jobs, "every job is completed");
    rounds.add(jobs, spent);
    schema.drop().await.expect("it drops");
}

async fn bare(place: &Place, rounds: &mut Rounds, (clients, batch, jobs): (u32, u32, u64)) {
    let schema = place.schema().await;
    let mut connection = raw::prepare(&schema).await;
    run(&mut connection, &raw::fill("raw_ready", jobs)).await;
    settle_in(&mut connection).await;
    let (done, spent) = place.spend(raw::drain(&schema, clients, i64::from(batch))).await;
    assert_eq!(done, jobs, "every job is seen");
    rounds.add(jobs, spent);
    schema.drop().await.expect("it drops");
}

async fn singly(place: &Place, rounds: &mut Rounds) {
    let jobs = SHAPES[3].2;
    let schema = place.schema().await;
    let mut connection = raw::prepare(&schema).await;
    run(&mut connection, &raw::fill("raw_single", jobs)).await;
    settle_in(&mut connection).await;
    let (done, spent) = place.spend(raw::single(&schema, 8)).await;
    assert_eq!(done, jobs, "every job is seen");
    rounds.add(jobs, spent);
    schema.drop().await.expect("it drops");
}

async fn articles(place: &Place, rounds: &mut Rounds) {
    let jobs = SHAPES[3].2;
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    let payload = "'{\"to\":\"customer-' || g || '@example.com\"}'";
    let rows = format!("SELECT g, 'email', {payload}, 0, 5 FROM generate_series(1, {jobs}) AS g");
    run(&mut connection, &format!("INSERT INTO article (id, type, payload, priority, max_retries) {rows}")).await;
    settle_in(&mut connection).await;
    let (drained, spent) = place.spend(drain(&schema, crew(8, 1, ClaimMode::Transaction, succeed), jobs)).await;
    assert_eq!(drained.expect("it drains").tally.completed, jobs, "every job is completed");
    rounds.add(jobs, spent);
    schema.drop().await.expect("it drops");
}
