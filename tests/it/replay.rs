//! The workers of a real run, fed again with what they were told, ask for the same things; and what they decided is what they decide
//! in virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use simq::job::JobId;
use simq::journal::Step;
use simq::metrics::{Attempt, Fate};
use simq::profile::Profile;
use simq::sim;
use simq::worker::{Command, Event, Worker};

use crate::cluster;
use crate::play::{plan, scenario};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_runs_tape_gives_the_same_commands_to_fresh_workers() {
    let scenario = scenario(
        "seed = 9
        [[jobs]]
        type = 'email'
        count = 150
        arrival = 'poisson'
        rate = '300/s'
        permanent = 0.1
        max_retries = 20
        [workers]
        count = 3
        slots = 8
        lease = '900ms'
        [downstream]
        servers = 8
        latency = { kind = 'log-normal', median = '5ms', p99 = '40ms' }
        queue = 20
        error_rate = 0.1
        client_timeout = '600ms'
        [[downstream.outage]]
        at = '100ms'
        lasts = '300ms'
        mode = 'unavailable'
        [policy.decorrelated]
        kind = 'exponential'
        base = '10ms'
        cap = '300ms'
        jitter = 'decorrelated'
        ",
    );
    let database = cluster::database().await;
    let mut plan = plan(&scenario, 0, &database, "simq_test");
    plan.tape = true;
    let outcome = simq::real::run(plan).await.unwrap();
    let mut tapes: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
    for step in outcome.tapes.into_iter().flat_map(|tape| tape.0) {
        tapes.entry(step.worker).or_default().push(step);
    }
    assert_eq!(tapes.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    for (&id, steps) in &tapes {
        let timeout = scenario.downstream.client_timeout;
        let mut worker = Worker::new(id, scenario.workers, timeout, scenario.policies[0].policy.clone(), scenario.seed);
        for (number, step) in steps.iter().enumerate() {
            let mut commands = Vec::new();
            worker.handle(step.at, &step.event, &mut commands);
            assert_eq!(commands, step.commands, "worker {id}, step {number}: {:?}", step.event);
        }
        assert!(worker.is_idle(), "the tape is whole");
    }
    let steps: Vec<&Step> = tapes.values().flatten().collect();
    let sent = steps.iter().flat_map(|step| &step.commands).filter(|command| matches!(command, Command::Call(_))).count();
    assert_eq!(sent, outcome.record.attempts.len());
    assert!(sent > 160, "the outage made retries: {sent}");
    for (what, seen) in [
        ("claimed", steps.iter().any(|step| matches!(step.event, Event::Claimed(_)))),
        ("notified", steps.iter().any(|step| step.event == Event::Notified)),
        ("woke", steps.iter().any(|step| step.event == Event::Woke)),
        ("drain", steps.iter().any(|step| step.event == Event::Drain)),
    ] {
        assert!(seen, "no worker was told: {what}");
    }
}

/// What happened to each job, attempt by attempt: the answers so far, and what was decided then.
fn decisions(attempts: &[Attempt]) -> BTreeMap<(JobId, Vec<String>), Fate> {
    let mut by_job: BTreeMap<JobId, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.outcome.is_some()) {
        by_job.entry(attempt.job).or_default().push(attempt);
    }
    let mut decided = BTreeMap::new();
    for (job, mut attempts) in by_job {
        attempts.sort_by_key(|attempt| attempt.attempt);
        // One whose lease was lost was decided by the store.
        let whole = attempts.iter().zip(1..).take_while(|(attempt, n)| attempt.attempt == *n && attempt.fate != Fate::Lost);
        let mut answers = Vec::new();
        for (attempt, _) in whole {
            answers.push(format!("{:?}", attempt.outcome));
            decided.insert((job, answers.clone()), attempt.fate);
        }
    }
    decided
}

/// What strikes, strikes by job and attempt, whenever that comes: so every job has the same fate in both worlds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_delay_of_a_real_run_is_that_of_the_virtual_one_to_the_nanosecond() {
    let scenario = scenario(
        "seed = 21
        [[jobs]]
        type = 'email'
        count = 120
        arrival = 'poisson'
        rate = '400/s'
        permanent = 0.05
        max_retries = 4
        [workers]
        count = 3
        slots = 16
        [downstream]
        servers = 200
        latency = { kind = 'exponential', mean = '3ms' }
        error_rate = 0.3
        client_timeout = '20s'
        [[downstream.outage]]
        at = '0s'
        lasts = '59s'
        mode = 'unavailable'
        probability = 0.3
        retry_after = '1s'
        [policy.full]
        kind = 'exponential'
        base = '10ms'
        cap = '200ms'
        jitter = 'full'
        [policy.decorrelated]
        kind = 'exponential'
        base = '10ms'
        cap = '300ms'
        jitter = 'decorrelated'
        [policy.growing]
        kind = 'polynomial'
        base = '5ms'
        power = 2
        jitter = 'growing'
        jitter_growth = '15ms'
        [policy.heeding]
        kind = 'constant'
        delay = '20ms'
        jitter = 'equal'
        retry_after = 'spread'
        hint_share = 0.3
        ",
    );
    let database = cluster::database().await;
    for (index, named) in scenario.policies.iter().enumerate() {
        let real = simq::real::run(plan(&scenario, index, &database, &format!("simq_test_{index}"))).await.unwrap();
        let profile = Profile::built_in();
        let plan = sim::Plan { scenario: &scenario, policy: &named.policy, seed: scenario.seed, profile: &profile, tape: false };
        let simulated = sim::run(plan, &AtomicBool::new(false)).unwrap();
        let (real, simulated) = (decisions(&real.record.attempts), decisions(&simulated.record.attempts));
        assert_eq!(real.len(), simulated.len(), "{}", named.name);
        for (past, fate) in &real {
            assert_eq!(Some(fate), simulated.get(past), "{}: job {} after {:?}", named.name, past.0, past.1);
        }
        let waits = real.values().filter(|fate| matches!(fate, Fate::Retried(after) if !after.is_zero()));
        assert!(waits.count() > 60, "{}", named.name);
    }
}
