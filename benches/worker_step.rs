//! How many events a second can a worker take, and what does it cost to watch? The life of a worker with 1,000 jobs, a third
//! of whose attempts fail, through `journal::step` with a `Recorder`, beside the same with nobody watching.

mod beside;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use beside::{Pair, time};
use criterion::{Criterion, Throughput};
use simq::call::Outcome;
use simq::job::{JobId, Memory};
use simq::journal::{self, Sink, Tape};
use simq::metrics::Recorder;
use simq::policy::{Backoff, Jitter, Policy, RetryAfter};
use simq::queue::{Claim, ClaimMode, Claimed, Settled, Token};
use simq::rng::Seed;
use simq::time::Instant;
use simq::worker::{Command, Event, Settings, Wait, Worker};

const JOBS: u64 = 1000;
const SLOTS: u32 = 10;
const STEP: Duration = Duration::from_micros(100);

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let events = script();
    let count = events.len() as u64;
    let mut group = criterion.benchmark_group("worker_step");
    group.throughput(Throughput::Elements(count));
    let pair = Pair::bench(&mut group, "a worker and its recorder", "the worker alone", |times| {
        let (mut watched, mut alone) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..times {
            watched += live(&events, &mut Recorder::default());
            alone += live(&events, &mut ());
        }
        [watched, alone]
    });
    group.finish();
    criterion.final_summary();
    if let Some(pair) = pair {
        pair.tell(Some((count, "events")));
    }
}

/// A worker's life, event by event. Making and dropping the events, the worker and the sink is not timed, but what the sink keeps is.
fn live(events: &[(Instant, Event)], sink: &mut impl Sink) -> Duration {
    let mut worker = worker();
    let mut out = Vec::new();
    let mut events = Vec::from(events).into_iter();
    time(events.len() as u64, |_| {
        let (at, event) = events.next().expect("as many as there are");
        journal::step(&mut worker, at, event, sink, &mut out);
        out.clear();
    })
}

/// The events of a life, played once against a store that always has jobs and a service that fails every third call.
fn script() -> Vec<(Instant, Event)> {
    let (mut worker, mut tape, mut out) = (worker(), Tape::default(), Vec::new());
    let mut waiting = VecDeque::from([Event::Started]);
    let (mut now, mut claimed) = (Instant::START, 0);
    while let Some(event) = waiting.pop_front() {
        journal::step(&mut worker, now, event, &mut tape, &mut out);
        waiting.extend(out.drain(..).filter_map(|command| answer(command, &mut claimed)));
        // Nothing else happens at this instant: now it settles.
        if waiting.is_empty() && worker.in_flight() > 0 {
            waiting.push_back(Event::Woke);
        }
        now = now + STEP;
    }
    assert_eq!(claimed, JOBS, "the worker took all jobs");
    tape.0.into_iter().map(|step| (step.at, step.event)).collect()
}

fn answer(command: Command, claimed: &mut u64) -> Option<Event> {
    Some(match command {
        Command::Claim { limit, .. } => {
            let first = *claimed + 1;
            *claimed = (*claimed + u64::from(limit)).min(JOBS);
            if first > JOBS {
                return None;
            }
            Event::Claimed(Claimed { claims: (first..=*claimed).map(claim).collect(), next_due: None })
        }
        Command::Call(request) => {
            let outcome = if request.job.0 % 3 == 0 { Outcome::status(503) } else { Outcome::Ok };
            Event::Replied { token: request.token, outcome }
        }
        Command::Settle { settlements, .. } => {
            Event::Settled(Settled { settled: settlements.iter().map(|s| s.token).collect(), lost: vec![] })
        }
        Command::Extend { .. } => Event::Extended { lost: vec![] },
        Command::Reap => Event::Reaped { returned: 0, discarded: 0 },
        Command::Remind { .. } => return None,
    })
}

fn claim(job: u64) -> Claim {
    Claim {
        job: JobId(job),
        token: Token(job as i64),
        kind: Arc::from("email"),
        payload: Arc::from("{\"to\":\"customer-1@example.com\"}"),
        memory: Memory { retries: 0, max_retries: 3, last_delay: None, age: Duration::from_millis(1) },
        lag: Duration::from_micros(300),
    }
}

fn worker() -> Worker {
    let wait = Wait::Due { at_most: Duration::from_millis(200) };
    let lease = Duration::from_secs(30);
    let settings = Settings { count: 1, slots: SLOTS, connections: 1, claim: ClaimMode::Lease, batch: SLOTS, lease, wait };
    let policy = Policy {
        backoff: Backoff::Exponential { base: Duration::from_millis(100), factor: 2.0 },
        cap: None,
        jitter: Jitter::Full,
        max_retries: None,
        classify: true,
        retry_after: RetryAfter::Ignore,
        ..Policy::default()
    };
    Worker::new(0, settings, Duration::from_secs(1), policy, Seed(1))
}
