//! The model against queueing theory: what it makes of random arrivals must agree with the textbooks.
//!
//! Units are seconds, the mean service time is 1. Expected values are closed forms (Erlang B and C, Pollaczek–Khinchine),
//! computed here; each tolerance comes from the run's own standard error, by batch means: consecutive waits are correlated,
//! means of long batches hardly are.

use std::time::Duration;

use simq::call::{Call, Outcome, Reply};
use simq::dist::Dist;
use simq::downstream::{Discipline, Downstream, Settings};
use simq::job::JobId;
use simq::rng::{Seed, Stream};
use simq::time::{Instant, seconds};

const SECOND: Duration = Duration::from_secs(1);
const CALLS: u64 = 25_000;
const BATCHES: usize = 20;
/// Student's t for 19 degrees of freedom: one false alarm in about a thousand.
const T: f64 = 3.9;

/// What happened to the calls after the first tenth, in order: the wait, or `None` for those turned away.
fn waits(settings: Settings, rate: f64, seed: u64) -> Vec<Option<f64>> {
    let seed = Seed(seed);
    let mut downstream = Downstream::new(settings, seed);
    let mut now = Instant::START;
    let mut waits = vec![None; CALLS as usize];
    let mut waiting = std::collections::BTreeMap::new();
    let mut settle = |job: usize, arrived: Instant, admission: &simq::call::Admission| {
        waits[job] = admission.work.map(|work| work.from.since(arrived).as_secs_f64());
    };
    for job in 0..CALLS {
        let unit = seed.draw(Stream::Arrival, JobId(job), 1).unit();
        now = now + seconds(-(1.0 - unit).ln() / rate);
        let admission = downstream.take(now, &Call::new(JobId(job), 1, "{}"));
        match admission.reply {
            Reply::Waits(ticket) => {
                waiting.insert(ticket, (job as usize, now));
            }
            _ => settle(job as usize, now, &admission),
        }
        for (ticket, admission) in downstream.release(now) {
            if let Some((job, arrived)) = waiting.remove(&ticket) {
                settle(job, arrived, &admission);
            }
        }
    }
    waits.split_off(CALLS as usize / 10)
}

/// The mean of a stationary series, and its standard error.
fn batch_means(values: &[f64]) -> (f64, f64) {
    let size = values.len() / BATCHES;
    let means: Vec<f64> = values.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn agrees(what: &str, values: &[f64], expected: f64) {
    let (mean, error) = batch_means(values);
    println!("{what}: {mean:.4} ± {error:.4}, in theory {expected:.4}");
    assert!((mean - expected).abs() < T * error, "{what}: {mean:.4} ± {error:.4}, in theory {expected:.4}");
    assert!(error < expected / 4.0, "{what}: an error of {error:.4} would let anything pass");
}

fn service(servers: u32, latency: Dist) -> Settings {
    Settings { servers, queue: 1_000_000, latency, ..Settings::default() }
}

fn mean_wait_agrees(what: &str, settings: Settings, rate: f64, expected: f64) {
    let waits = waits(settings, rate, 7);
    let waits: Vec<f64> = waits.into_iter().map(|wait| wait.expect("the queue has room")).collect();
    agrees(what, &waits, expected);
}

const EXPONENTIAL: Dist = Dist::Exponential { mean: SECOND };

/// Erlang B: the loss of `servers` without a queue under `load` Erlang, by the stable recursion.
fn erlang_b(servers: u32, load: f64) -> f64 {
    (1..=servers).fold(1.0, |loss, k| load * loss / (f64::from(k) + load * loss))
}

/// Erlang C: the mean wait in M/M/c.
fn erlang_c_wait(servers: u32, load: f64) -> f64 {
    let (loss, utilisation) = (erlang_b(servers, load), load / f64::from(servers));
    let delayed = loss / (1.0 - utilisation + utilisation * loss);
    delayed / (f64::from(servers) - load)
}

/// Pollaczek–Khinchine: the mean wait in M/G/1 for a mean service time of 1 with this squared coefficient of variation.
fn pollaczek_khinchine(load: f64, cv2: f64) -> f64 {
    load * (1.0 + cv2) / (2.0 * (1.0 - load))
}

#[test]
fn the_formulas_are_those_of_the_textbooks() {
    for (servers, load, wait) in [(2, 1.0, 0.333_333_333_3), (4, 3.2, 0.745_540_589_7), (10, 7.0, 0.073_910_405_3)] {
        assert!((erlang_c_wait(servers, load) - wait).abs() < 1e-9, "{servers} servers");
    }
    assert!((erlang_b(4, 3.2) - 0.228_144_93).abs() < 1e-9);
    assert!((pollaczek_khinchine(0.8, 1.0) - 4.0).abs() < 1e-12);
}

#[test]
fn one_server_makes_calls_wait_as_m_m_1_says() {
    mean_wait_agrees("M/M/1 at 0.5", service(1, EXPONENTIAL), 0.5, 1.0);
    mean_wait_agrees("M/M/1 at 0.8", service(1, EXPONENTIAL), 0.8, 4.0);
}

#[test]
fn several_servers_make_calls_wait_as_erlang_c_says() {
    for (servers, load) in [(2, 1.0), (4, 3.2), (10, 7.0)] {
        let what = format!("M/M/{servers} under {load} Erlang");
        mean_wait_agrees(&what, service(servers, EXPONENTIAL), load, erlang_c_wait(servers, load));
    }
}

#[test]
fn service_times_of_any_shape_follow_pollaczek_and_khinchine() {
    let constant = Dist::Constant { value: SECOND };
    mean_wait_agrees("M/D/1 at 0.5", service(1, constant), 0.5, pollaczek_khinchine(0.5, 0.0));
    mean_wait_agrees("M/D/1 at 0.8", service(1, constant), 0.8, pollaczek_khinchine(0.8, 0.0));
    let uniform = Dist::Uniform { min: Duration::ZERO, max: 2 * SECOND };
    mean_wait_agrees("M/G/1 at 0.8, uniform", service(1, uniform), 0.8, pollaczek_khinchine(0.8, 1.0 / 3.0));
    // Of σ = 1: the mean is exp(μ + 1/2) = 1, the squared coefficient of variation e − 1.
    let median = (-0.5_f64).exp();
    let heavy = Dist::LogNormal { median: seconds(median), p99: seconds(median * 2.326_347_874_f64.exp()) };
    mean_wait_agrees("M/G/1 at 0.5, log-normal", service(1, heavy), 0.5, pollaczek_khinchine(0.5, 1_f64.exp() - 1.0));
}

#[test]
fn a_bounded_queue_loses_what_m_m_1_k_says() {
    for (load, places) in [(0.8_f64, 5), (1.2, 10), (2.0, 10)] {
        let expected = (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1));
        let settings = Settings { queue: places as u32 - 1, ..service(1, EXPONENTIAL) };
        let lost: Vec<f64> = waits(settings, load, 7).iter().map(|wait| f64::from(u8::from(wait.is_none()))).collect();
        agrees(&format!("M/M/1/{places} at {load}"), &lost, expected);
    }
}

#[test]
fn without_a_queue_the_loss_is_erlang_b_whatever_the_shape() {
    for latency in [EXPONENTIAL, Dist::Constant { value: SECOND }] {
        let settings = Settings { queue: 0, ..service(4, latency) };
        let lost: Vec<f64> = waits(settings, 3.2, 7).iter().map(|wait| f64::from(u8::from(wait.is_none()))).collect();
        agrees(&format!("{latency:?}, 4 servers, no queue"), &lost, erlang_b(4, 3.2));
    }
}

#[test]
fn last_in_first_out_waits_as_long_on_average_and_more_unevenly() {
    let lifo = Settings { discipline: Discipline::Lifo, ..service(1, EXPONENTIAL) };
    // Those that still waited when the last call came have no wait; at this load there are none to speak of.
    let lifo: Vec<f64> = waits(lifo, 0.5, 7).into_iter().flatten().collect();
    agrees("M/M/1 at 0.5, last in first out", &lifo, 1.0);
    let fifo: Vec<f64> = waits(service(1, EXPONENTIAL), 0.5, 7).into_iter().flatten().collect();
    let square = |waits: &[f64]| waits.iter().map(|wait| wait * wait).sum::<f64>() / waits.len() as f64;
    assert!(square(&lifo) > 1.3 * square(&fifo));
}

#[test]
fn retries_against_a_fault_of_a_probability_succeed_as_the_powers_say() {
    let outage = simq::downstream::Outage {
        probability: 0.5,
        ..simq::downstream::Outage::plain(
            simq::time::Window::starting(Duration::ZERO, 1000 * SECOND),
            simq::downstream::Mode::Reset,
        )
    };
    let mut downstream = Downstream::new(Settings { servers: 1000, outages: vec![outage], ..Settings::default() }, Seed(7));
    let succeeds = |job: u64| {
        let mut call = |attempt| downstream.admit(Instant::START, &Call::new(JobId(job), attempt, "{}"));
        (1..=4).any(|attempt| call(attempt).seen(Instant::START, SECOND).0 == Outcome::Ok)
    };
    let succeeded: Vec<f64> = (0..5_000).map(succeeds).map(|ok| f64::from(u8::from(ok))).collect();
    agrees("1 − p⁴ for p = 0.5", &succeeded, 0.9375);
}
