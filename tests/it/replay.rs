//! The workers of a real run, fed again with what they were told, ask for the same things.

use std::collections::BTreeMap;

use simq::journal::Step;
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
