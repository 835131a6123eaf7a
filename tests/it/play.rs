//! Real runs, small ones: a scenario in a few lines, played against a fresh database.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use simq::call::Outcome as Answer;
use simq::job::JobId;
use simq::metrics::Attempt;
use simq::real::{End, Live, Outcome, Plan};
use simq::scenario::{self, Scenario};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;

use crate::cluster;

/// Far beyond what anything here takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A service that is fast and has room for everybody.
pub const HEALTHY: &str = "[downstream]\nservers = 100\nqueue = 1000\nlatency = { kind = 'constant', value = '5ms' }\n";
pub const PATIENT: &str = "[policy.patient]\nkind = 'constant'\ndelay = '60ms'\njitter = 'proportional'\njitter_share = 0.5\n";

pub fn jobs(count: u32, more: &str) -> String {
    format!("[[jobs]]\ntype = 'email'\ncount = {count}\nmax_retries = 200\n{more}\n")
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The scenario that this text describes; a name and a horizon are added.
pub fn scenario(text: &str) -> Scenario {
    let text = format!("name = 'test'\n{}{text}", if text.contains("horizon") { "" } else { "horizon = '60s'\n" });
    scenario::parse(&text, &|_| Err(io::ErrorKind::NotFound.into())).unwrap_or_else(|error| panic!("{error}"))
}

/// How to play a scenario's policy `index` in a schema of this database.
pub fn plan<'a>(scenario: &'a Scenario, index: usize, database: &'a PgConnectOptions, schema: &str) -> Plan<'a> {
    Plan {
        scenario,
        policy: &scenario.policies[index].policy,
        seed: scenario.seed,
        database,
        own_server: false,
        restarter: None,
        schema: schema.to_owned(),
        note: "simq test".to_owned(),
        keep: false,
        live: Arc::new(Live::default()),
        stop: watch::channel(false).1,
        tape: false,
    }
}

/// Plays the first policy in a fresh database. The audit must find nothing.
pub async fn play(scenario: &Scenario) -> Outcome {
    let database = cluster::database().await;
    let outcome = simq::real::run(plan(scenario, 0, &database, "simq_test")).await.unwrap();
    assert_eq!(outcome.breaches, [""; 0]);
    outcome
}

pub fn assert_all_completed(outcome: &Outcome) {
    assert_eq!(outcome.end, End::Finished);
    let counts = outcome.summary.counts;
    assert_eq!((counts.completed, counts.unfinished), (counts.jobs, 0), "{counts:?}");
}

pub fn attempts_by_job(outcome: &Outcome) -> BTreeMap<JobId, Vec<Attempt>> {
    let mut jobs: BTreeMap<JobId, Vec<Attempt>> = BTreeMap::new();
    for attempt in &outcome.record.attempts {
        jobs.entry(attempt.job).or_default().push(*attempt);
    }
    jobs
}

/// How a call ended.
pub fn answer(attempt: &Attempt) -> Answer {
    attempt.outcome.expect("every call was answered")
}

/// How many calls ended so.
pub fn count(outcome: &Outcome, answer: Answer) -> u64 {
    outcome.record.attempts.iter().filter(|attempt| attempt.outcome == Some(answer)).count() as u64
}

/// Asks again and again until there is an answer.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    let mut pause = tokio::time::interval(Duration::from_millis(2));
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < LIMIT, "waited in vain for {what}");
        pause.tick().await;
    }
}
