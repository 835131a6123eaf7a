//! What does a decision cost, and beside what others ask for the same curve?
//!
//! Everything in one run, on one machine: the ratios hold where the nanoseconds do not. Our decision has a part that theirs has not: a fresh
//! generator from its key, so that the same job's same attempt meets the same luck in every run. `draw` is that part alone.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark measures this machine's time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use backoff::backoff::Backoff as _;
use backon::BackoffBuilder as _;
use criterion::{Criterion, criterion_group, criterion_main};
use retry_policies::{Jitter as TheirJitter, RetryPolicy as _};
use simq::call::Outcome;
use simq::job::{JobId, Memory};
use simq::policy::{Backoff, Expression, ExpressionSettings, Jitter, Policy, preset};
use simq::rng::{Seed, Stream};

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(30);
const RETRIES: u32 = 10;

fn ours(jitter: Jitter) -> Policy {
    Policy {
        backoff: Backoff::Exponential { base: BASE, factor: 2.0 },
        cap: Some(CAP),
        jitter,
        classify: true,
        ..Policy::default()
    }
}

fn expression() -> Policy {
    let settings = ExpressionSettings { base: Some(BASE), cap: Some(CAP) };
    let delay = Expression::parse("min(cap, base * 2^n) * uniform(0.5, 1)", settings).expect("a formula");
    Policy { backoff: Backoff::Expression { delay: Box::new(delay) }, ..ours(Jitter::None) }
}

/// One decision: the draw, the class of the failure, the limit, the delay.
fn decide(policy: &Policy, job: u64, retries: u32) {
    let memory = Memory { retries: retries % RETRIES, max_retries: u32::MAX, last_delay: Some(BASE), age: Duration::ZERO };
    let mut draw = Seed(1).draw(Stream::Jitter, JobId(job), memory.attempt());
    black_box(policy.decide(&memory, black_box(&Outcome::status(503)), &mut draw));
}

/// One delay, as the libraries that know no failures give it.
fn delay(policy: &Policy, job: u64, retries: u32) {
    let n = retries % RETRIES + 1;
    let mut draw = Seed(1).draw(Stream::Jitter, JobId(job), n);
    black_box(policy.delay(black_box(n), None, &mut draw));
}

/// The next delay of a schedule that is made anew when it has come to its end.
fn stream<I: Iterator<Item = Duration>>(make: impl Fn() -> I) -> impl FnMut() {
    let (mut schedule, mut left) = (make(), RETRIES);
    move || {
        if left == 0 {
            (schedule, left) = (make(), RETRIES);
        }
        left -= 1;
        black_box(schedule.next());
    }
}

/// A name and what is measured under it.
type Asked = (&'static str, Box<dyn FnMut()>);

fn theirs() -> Vec<Asked> {
    let backon = |jitter: bool| {
        let builder =
            backon::ExponentialBuilder::default().with_min_delay(BASE).with_factor(2.0).with_max_delay(CAP).with_max_times(99);
        if jitter { builder.with_jitter() } else { builder }
    };
    let tokio = || tokio_retry::strategy::ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
    let policies = |jitter| {
        let policy = retry_policies::policies::ExponentialBackoff::builder()
            .retry_bounds(BASE, CAP)
            .base(2)
            .jitter(jitter)
            .build_with_max_retries(99);
        let (mut n, now) = (0, std::time::SystemTime::now());
        move || {
            black_box(policy.should_retry(now, black_box(n)));
            n = (n + 1) % RETRIES;
        }
    };
    let backoff = |factor: f64| {
        let mut policy = backoff::ExponentialBackoff {
            initial_interval: BASE,
            current_interval: BASE,
            randomization_factor: factor,
            multiplier: 2.0,
            max_interval: CAP,
            max_elapsed_time: None,
            ..backoff::ExponentialBackoff::default()
        };
        let mut left = RETRIES;
        move || {
            if left == 0 {
                policy.reset();
                left = RETRIES;
            }
            left -= 1;
            black_box(policy.next_backoff());
        }
    };
    vec![
        ("none/backon", Box::new(stream(move || backon(false).build()))),
        ("none/tokio-retry", Box::new(stream(tokio))),
        ("none/retry-policies", Box::new(policies(TheirJitter::None))),
        ("none/backoff", Box::new(backoff(0.0))),
        ("jitter/backon", Box::new(stream(move || backon(true).build()))),
        ("jitter/tokio-retry", Box::new(stream(move || tokio().map(tokio_retry::strategy::jitter)))),
        ("jitter/retry-policies", Box::new(policies(TheirJitter::Full))),
        ("jitter/backoff", Box::new(backoff(0.5))),
    ]
}

fn mine() -> Vec<Asked> {
    type Ask = fn(&Policy, u64, u32);
    let run = |policy: Policy, ask: Ask| {
        let mut job = 0_u64;
        Box::new(move || {
            job += 1;
            ask(&policy, job, job as u32);
        }) as Box<dyn FnMut()>
    };
    let preset = |id: &str| preset::find(id).expect("a preset").policy();
    let mut job = 0;
    let draw = Box::new(move || {
        job += 1;
        black_box(Seed(1).draw(Stream::Jitter, JobId(job), 1).unit());
    });
    vec![
        ("draw", draw as Box<dyn FnMut()>),
        ("none/simq", run(ours(Jitter::None), delay as Ask)),
        ("jitter/simq", run(ours(Jitter::Full), delay)),
        ("decide/none", run(ours(Jitter::None), decide)),
        ("decide/full", run(ours(Jitter::Full), decide)),
        ("decide/decorrelated", run(ours(Jitter::Decorrelated { bound: false, rising: false }), decide)),
        ("decide/sidekiq", run(preset("sidekiq"), decide)),
        ("decide/aws.2026.transient", run(preset("aws.2026.transient"), decide)),
        ("decide/polly timeline", run(preset("polly.v8.exponential+jitter(2s)"), decide)),
        ("decide/expression", run(expression(), decide)),
    ]
}

/// Nanoseconds per call: the least median of a few rounds, which a busy machine disturbs least.
fn nanos(ask: &mut dyn FnMut()) -> f64 {
    const CALLS: u32 = 200_000;
    let mut rounds: Vec<f64> = (0..9)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..CALLS {
                ask();
            }
            began.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[2]
}

/// The ratios, all from this run.
fn ratios() {
    let mut figures: Vec<(&str, f64)> = Vec::new();
    for (name, mut ask) in mine().into_iter().chain(theirs()) {
        figures.push((name, nanos(&mut ask)));
    }
    let of = |name: &str| figures.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, nanos)| *nanos);
    println!("\nns per call, and how often the keyed draw goes into it");
    for (name, nanos) in &figures {
        println!("  {name:28} {nanos:8.1} ns  {:5.2} draws", nanos / of("draw"));
    }
    for curve in ["none", "jitter"] {
        let others = figures.iter().filter(|(name, _)| name.starts_with(curve) && !name.ends_with("simq"));
        let (fastest, least) =
            others.fold(("", f64::INFINITY), |best, (name, nanos)| if *nanos < best.1 { (name, *nanos) } else { best });
        let (own, draw) = (of(&format!("{curve}/simq")), of("draw"));
        let verdict = if own <= least + draw { "within" } else { "ABOVE" };
        println!(
            "{curve}: simq {own:.1} ns, the fastest ({fastest}) {least:.1} ns: {:.2} times; less the draw {:.1} ns: {verdict} the fastest and a draw",
            own / least,
            own - draw
        );
    }
    println!();
}

fn benches(criterion: &mut Criterion) {
    ratios();
    for (name, mut ask) in mine().into_iter().chain(theirs()) {
        criterion.bench_function(name, |bencher| bencher.iter(&mut ask));
    }
}

criterion_group! {
    name = policies;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(600));
    targets = benches
}
criterion_main!(policies);
