//! How soon an idle engine starts a new job: from the producer's commit to the handler.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use simq::call::Outcome;
use simq::queue::ClaimMode;
use simq::real::drain;
use simq::real::pg::announce;
use simq::worker::{Request, Wait};

use super::place::{Place, connect, crew, fill, run};

/// When each job was handed to the handler, by its number.
static STARTED: Mutex<Vec<Option<Instant>>> = Mutex::new(Vec::new());

const JOBS: u64 = 300;

fn note(request: &Request) -> Outcome {
    let mut started = STARTED.lock().expect("nobody panics while holding it");
    started[request.job.0 as usize] = Some(Instant::now());
    Outcome::Ok
}

pub async fn measure(place: &Place) {
    let schema = place.schema().await;
    let mut connection = connect(&schema).await;
    *STARTED.lock().expect("nobody panics while holding it") = vec![None; JOBS as usize + 1];
    let mut crew = crew(4, 10, ClaimMode::Lease, note);
    crew.workers.wait = Wait::Listen { at_most: Duration::from_secs(1) };
    let produce = async {
        let mut committed = Vec::new();
        for id in 1..=JOBS {
            // Long enough for the workers to have fallen asleep; each a little longer than the last, so that no timer falls into step.
            tokio::time::sleep(Duration::from_micros(5_000 + 13 * id)).await;
            run(&mut connection, &fill(id, 1)).await;
            committed.push(Instant::now());
            announce(&mut connection, schema.name()).await.expect("it announces");
        }
        committed
    };
    let (committed, drained) = tokio::join!(produce, drain(&schema, crew, JOBS));
    assert_eq!(drained.expect("it drains").tally.completed, JOBS, "every job is completed");
    let started = STARTED.lock().expect("nobody panics while holding it");
    let lag = |(at, id): (Instant, usize)| {
        started[id].map_or(f64::NAN, |start| start.saturating_duration_since(at).as_secs_f64() * 1e3)
    };
    let mut lags: Vec<f64> = committed.into_iter().zip(1..).map(lag).collect();
    lags.sort_by(f64::total_cmp);
    let at = |share: f64| lags[((lags.len() - 1) as f64 * share) as usize];
    println!("\npickup: from a job's commit to its handler, idle engine, {JOBS} jobs one by one");
    println!("p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms, worst {:.2} ms", at(0.5), at(0.9), at(0.99), at(1.0));
}
