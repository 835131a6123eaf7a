//! Comparisons to report on: a herd of jobs against the model of the downstream, in a loop of forty lines.
//!
//! Good enough to look real, and the same on every run: slots take jobs as they come due, claims and settlements take 2 ms.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use simq::call::{Call, Outcome};
use simq::dist::Dist;
use simq::downstream::{self, Downstream, Mode, Outage};
use simq::job::{Memory, State};
use simq::metrics::{Attempt, Fate, JobRecord, Lens, RunRecord, Summary};
use simq::policy::{Backoff, Decision, Jitter, Policy};
use simq::queue::ClaimMode;
use simq::report::{Comparison, Conditions, Run};
use simq::rng::{Seed, Stream};
use simq::scenario::{Database, NamedPolicy, Scenario};
use simq::time::{Instant, Window};
use simq::worker::{self, Wait};
use simq::workload::{self, Arrival, Group};

const STORE: Duration = Duration::from_millis(2);

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// No backoff, exponential backoff, and the same with full jitter.
pub fn policies() -> Vec<NamedPolicy> {
    let exponential = Backoff::Exponential { base: ms(500), factor: 2.0 };
    let policy = |name: &str, backoff, jitter| {
        let cap = Some(ms(8_000));
        let policy = Policy { backoff, cap, jitter, classify: true, ..Policy::default() };
        NamedPolicy { name: name.into(), policy }
    };
    vec![
        policy("none", Backoff::None, Jitter::None),
        policy("exponential", exponential.clone(), Jitter::None),
        policy("full-jitter", exponential, Jitter::Full),
    ]
}

pub fn group(count: u64, arrival: Arrival) -> Group {
    Group { kind: "email".into(), count, arrival, at: Duration::ZERO, priority: 0, permanent: 0.0, max_retries: 8 }
}

/// 800 jobs at once and 50 a second for 8 s, against 16 servers that are unavailable from 1 s to 7 s.
pub fn scenario() -> Scenario {
    Scenario {
        name: "outage".into(),
        about: "a service goes away for six seconds".into(),
        seed: Seed(42),
        horizon: ms(60_000),
        repetitions: 1,
        stampede_window: ms(100),
        jobs: vec![group(800, Arrival::AtOnce), group(400, Arrival::Constant { rate: 50.0 })],
        workers: worker::Settings {
            count: 4,
            slots: 32,
            connections: 8,
            claim: ClaimMode::Lease,
            batch: 32,
            lease: ms(30_000),
            wait: Wait::Due { at_most: ms(1_000) },
        },
        database: Database::default(),
        downstream: downstream::Settings {
            servers: 16,
            queue: 64,
            latency: Dist::LogNormal { median: ms(30), p99: ms(120) },
            outages: vec![Outage::plain(
                Window::starting(ms(1_000), ms(6_000)),
                Mode::Unavailable { retry_after: None, dated: false },
            )],
            ..downstream::Settings::default()
        },
        chaos: vec![],
        policies: policies(),
        assertions: vec![],
    }
}

/// Every policy of the scenario in every repetition.
pub fn compare(scenario: Scenario) -> Comparison {
    let mut runs = Vec::new();
    for repetition in 1..=scenario.repetitions {
        for named in &scenario.policies {
            let seed = scenario.seed.repetition(repetition);
            let record = run(&scenario, &named.policy, seed);
            let summary = summarise(&scenario, &record);
            runs.push(Run { policy: named.name.clone(), repetition, seed: seed.0, record, summary, partial: false });
        }
    }
    let conditions = [("simq", "0.1.0"), ("postgres.synchronous_commit", "on")];
    let conditions = Conditions(conditions.into_iter().map(|(key, value)| (key.into(), value.into())).collect());
    Comparison { scenario, runs, conditions, warnings: vec![], partial: false }
}

/// One policy's run. Calls are sent in order of time, since jobs come due in order and slots fall free in order.
pub fn run(scenario: &Scenario, policy: &Policy, seed: Seed) -> RunRecord {
    let jobs = workload::jobs(&scenario.jobs, seed);
    let mut downstream = Downstream::new(scenario.downstream.clone(), seed);
    let mut due: BinaryHeap<Reverse<(Instant, usize)>> = jobs.iter().enumerate().map(|(i, job)| Reverse((job.at, i))).collect();
    let slots = scenario.workers.count * scenario.workers.slots;
    let mut free: BinaryHeap<Reverse<(Instant, u32)>> = (0..slots).map(|slot| Reverse((Instant::START, slot))).collect();
    let mut memory: Vec<(u32, Option<Duration>)> = vec![(0, None); jobs.len()];
    let mut record = RunRecord { jobs: jobs.iter().map(arrived).collect(), ..RunRecord::default() };
    while let (Some(Reverse((at, i))), Some(Reverse((slot_free, slot)))) = (due.pop(), free.pop()) {
        let sent = at.max(slot_free) + STORE;
        if sent.since_start() >= scenario.horizon {
            record.ended = Instant::START + scenario.horizon;
            break;
        }
        let (retries, last_delay) = memory[i];
        let call = Call { malformed: jobs[i].malformed, ..Call::new(jobs[i].id, retries + 1, "{}") };
        let (outcome, answered) = answer(&mut downstream, sent, &call, scenario.downstream.client_timeout);
        let max_retries = policy.max_retries.unwrap_or(scenario.jobs[jobs[i].group].max_retries);
        let memory_now = Memory { retries, max_retries, last_delay, age: sent.since(jobs[i].at) };
        let decision = policy.decide(&memory_now, &outcome, &mut seed.draw(Stream::Jitter, call.job, call.attempt));
        let settled = answered + STORE;
        let fate = settle(&mut record.jobs[i], decision, settled);
        if let Fate::Retried(after) = fate {
            memory[i] = (retries + 1, Some(after));
            due.push(Reverse((settled + after, i)));
        }
        free.push(Reverse((settled, slot)));
        record.ended = record.ended.max(settled);
        record.attempts.push(Attempt {
            job: call.job,
            attempt: call.attempt,
            worker: slot / scenario.workers.slots,
            due: at,
            claimed: sent,
            sent,
            answered: Some(answered),
            settled: Some(settled),
            outcome: Some(outcome),
            fate,
        });
    }
    record
}

fn arrived(job: &workload::Job) -> JobRecord {
    JobRecord {
        job: job.id,
        group: job.group,
        last_due: Some(Duration::ZERO),
        arrived: job.at,
        malformed: job.malformed,
        state: State::Available,
        why: None,
        retries: 0,
        finished: None,
    }
}

fn settle(job: &mut JobRecord, decision: Decision, settled: Instant) -> Fate {
    match decision {
        Decision::Complete => {
            (job.state, job.finished) = (State::Completed, Some(settled));
            Fate::Completed
        }
        Decision::Retry { after } => {
            (job.state, job.retries) = (State::Retryable, job.retries + 1);
            Fate::Retried(after)
        }
        Decision::Discard(why) => {
            (job.state, job.why, job.finished) = (State::Discarded, Some(why), Some(settled));
            Fate::Discarded(why)
        }
    }
}

fn answer(downstream: &mut Downstream, sent: Instant, call: &Call, timeout: Duration) -> (Outcome, Instant) {
    let (outcome, at) = downstream.admit(sent, call).seen(sent, timeout);
    (outcome, at.max(sent + ms(1)))
}

/// The figures of a record.
pub fn summarise(scenario: &Scenario, record: &RunRecord) -> Summary {
    Summary::of(
        record,
        &Lens {
            stampede_window: scenario.stampede_window,
            outages: scenario.spells().iter().map(|outage| outage.window).collect(),
            client_timeout: scenario.downstream.client_timeout,
            capacity: scenario.downstream.capacity(),
            workers: u64::from(scenario.workers.count),
            slots: u64::from(scenario.workers.count * scenario.workers.slots),
        },
    )
}

/// A comparison that holds only figures: for table and verdict.
pub fn figures(name: &str, summary: Summary) -> Run {
    Run { policy: name.into(), repetition: 1, seed: 1, record: RunRecord::default(), summary, partial: false }
}
