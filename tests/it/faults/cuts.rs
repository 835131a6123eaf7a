//! Connections that break before and after a commit: what is unknown is asked for again, and nothing is done twice.

use simq::metrics::Fate;
use simq::real::{End, Outcome};

use crate::cluster;
use crate::play::{plan, scenario};
use crate::proxy::{Act, CLAIM, INSERT, Proxy, Rule, SETTLE, Side};

/// Sixty jobs, half of whose calls fail, through a proxy that cuts these executions of a statement.
async fn cut(texts: &'static [&'static str], side: Side, turns: &[u32], lease: &str) -> Outcome {
    let scenario = scenario(&format!(
        "[[jobs]]\ntype = 'email'\ncount = 60\nmax_retries = 30\narrival = 'constant'\nrate = '120/s'\n\
         [workers]\ncount = 2\nslots = 4\nconnections = 3\nlease = '{lease}'\nwait = 'due'\npoll = '50ms'\n\
         [downstream]\nservers = 100\nerror_rate = 0.5\nlatency = {{ kind = 'constant', value = '5ms' }}\nclient_timeout = '600ms'\n\
         [policy.steady]\nkind = 'constant'\ndelay = '10ms'\n",
    ));
    let database = cluster::database().await;
    let proxy = Proxy::start(Rule { texts, side, act: Act::Cut, turns: turns.to_vec() }).await;
    let options = proxy.options(&database);
    let outcome = simq::real::run(plan(&scenario, 0, &options, "simq_test")).await.unwrap();
    assert_eq!(proxy.strikes(), turns.len() as u32, "every cut was made");
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Finished, &[][..]));
    assert_eq!(outcome.summary.counts.completed, 60);
    outcome
}

/// A lease that does not run out, however busy the machine.
const LONG: &str = "30s";
const TURNS: [u32; 4] = [2, 3, 7, 11];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_that_never_arrived_is_sent_again() {
    let outcome = cut(SETTLE, Side::Before, &TURNS, LONG).await;
    assert_eq!((outcome.summary.lost_leases, outcome.summary.repeated_calls), (0, 0));
}

/// The same settlement, sent twice, is carried out once: a retry that counted twice would show on the row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_whose_answer_was_lost_is_sent_again_and_carried_out_once() {
    let outcome = cut(SETTLE, Side::After, &TURNS, LONG).await;
    assert_eq!((outcome.summary.lost_leases, outcome.summary.repeated_calls), (0, 0));
    let retried = outcome.record.attempts.iter().filter(|attempt| matches!(attempt.fate, Fate::Retried(_))).count();
    let retries: u32 = outcome.record.jobs.iter().map(|job| job.retries).sum();
    assert_eq!(retries as usize, retried);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_never_arrived_takes_nothing() {
    let outcome = cut(CLAIM, Side::Before, &TURNS, LONG).await;
    assert_eq!(outcome.summary.lost_leases, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_was_lost_costs_a_lease_at_most_and_no_call() {
    // The first executions of all: those that find jobs.
    let outcome = cut(CLAIM, Side::After, &[1, 2, 3, 4, 5, 6], "1500ms").await;
    assert_eq!(outcome.summary.repeated_calls, 0, "nobody had called for what it took");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_new_jobs_whose_answer_was_lost_is_put_in_once() {
    let outcome = cut(INSERT, Side::After, &[1, 2, 3], LONG).await;
    assert_eq!(outcome.record.jobs.len(), 60);
}
