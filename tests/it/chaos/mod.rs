//! Chaos as a scenario asks for it: each blow falls, the report can say what it cost, and no job is lost.

mod imagined;
mod random;

use simq::job::State;
use simq::metrics::{Blow, Cause, Cost, Fate, Repeat, costs, repeats};
use simq::real::pg::throwaway::{Options, Throwaway};
use simq::real::{End, Outcome};
use simq::scenario::Scenario;

use crate::cluster;
use crate::play::{plan, scenario};

/// Three hundred jobs in a second, for four workers with short leases, and what befalls them.
fn busy(chaos: &str) -> Scenario {
    scenario(&format!(
        "[[jobs]]\ntype = 'email'\ncount = 300\narrival = 'constant'\nrate = '300/s'\nmax_retries = 30\n\
         [workers]\ncount = 4\nslots = 4\nconnections = 6\nlease = '600ms'\npoll = '100ms'\n\
         [downstream]\nservers = 16\nqueue = 1000\nlatency = {{ kind = 'constant', value = '20ms' }}\nclient_timeout = '500ms'\n\
         [policy.steady]\nkind = 'constant'\ndelay = '20ms'\n{chaos}"
    ))
}

fn entry(at: &str, what: &str, more: &str) -> String {
    format!("[[chaos]]\nat = '{at}'\nwhat = '{what}'\n{more}\n")
}

/// Plays it on the suite's server: the audit finds nothing, and every job is completed all the same.
async fn survives(scenario: &Scenario) -> Outcome {
    let database = cluster::database().await;
    completed(simq::real::run(plan(scenario, 0, &database, "simq_test")).await.unwrap())
}

/// A server that may be restarted.
async fn start() -> Throwaway {
    let guard = Some(env!("CARGO_BIN_EXE_simq").into());
    Throwaway::start(Options { guard, parent: Some(cluster::fast_place()), ..Options::default() }).await.unwrap()
}

/// The same on such a server.
async fn survives_on_its_own(scenario: &Scenario) -> Outcome {
    let mut server = start().await;
    let (database, restarter) = (server.connect_options(), server.restarter());
    let mut plan = plan(scenario, 0, &database, "simq_test");
    plan.restarter = Some(restarter);
    let outcome = tokio::select! {
        outcome = simq::real::run(plan) => outcome.unwrap(),
        ended = server.ended() => panic!("{ended}"),
    };
    server.stop().await.unwrap();
    completed(outcome)
}

fn completed(outcome: Outcome) -> Outcome {
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Finished, &[][..]));
    let counts = outcome.summary.counts;
    assert_eq!(counts.completed, counts.jobs, "{counts:?}");
    assert!(outcome.record.blows.iter().all(|blow| blow.hit > 0 && blow.failed.is_none()), "{:?}", outcome.record.blows);
    outcome
}

/// The one blow of a run, what it cost, and whom it made call again.
fn single(outcome: &Outcome) -> (&Blow, Cost, Vec<Repeat>) {
    let [blow] = &outcome.record.blows[..] else { panic!("{:?}", outcome.record.blows) };
    (blow, costs(&outcome.record)[0], repeats(&outcome.record))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_worker_had_under_way_is_done_again_when_its_leases_have_run_out() {
    let outcome = survives(&busy(&entry("300ms", "kill-workers", "share = 0.5"))).await;
    let (blow, cost, repeats) = single(&outcome);
    assert_eq!((blow.what, blow.workers.len()), ("kill-workers", 2));
    let killed = outcome.record.attempts.iter().filter(|attempt| attempt.fate == Fate::Killed).count() as u64;
    assert!(killed > 0 && cost.lost_leases == killed, "{killed} attempts died with them: {cost:?}");
    assert!(
        !repeats.is_empty() && repeats.iter().all(|repeat| repeat.cause == Cause::Killed && repeat.blow == Some(0)),
        "{repeats:?}"
    );
    assert!(repeats.iter().all(|repeat| blow.workers.contains(&repeat.worker)), "{repeats:?}");
    let after = |worker: u32| outcome.record.attempts.iter().any(|attempt| attempt.worker == worker && attempt.claimed > blow.at);
    assert!(!blow.workers.iter().any(|worker| after(*worker)), "the dead claim nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_is_filled_again_by_a_worker_with_a_number_of_its_own() {
    let outcome = survives(&busy(&entry("200ms", "kill-workers", "share = 1.0\nlasts = '100ms'"))).await;
    let (blow, ..) = single(&outcome);
    assert_eq!(blow.workers, [0, 1, 2, 3]);
    let later = outcome.record.attempts.iter().filter(|attempt| attempt.claimed > blow.at);
    let workers: std::collections::BTreeSet<u32> = later.map(|attempt| attempt.worker).collect();
    assert!(!workers.is_empty() && workers.iter().all(|worker| (4..8).contains(worker)), "{workers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_worker_settles_that_stood_still_past_its_lease_is_refused() {
    let outcome = survives(&busy(&entry("300ms", "pause-workers", "lasts = '1300ms'")).clone()).await;
    let (blow, cost, repeats) = single(&outcome);
    assert_eq!(blow.workers.len(), 1);
    assert!(repeats.iter().any(|repeat| repeat.cause == Cause::Paused), "{repeats:?}");
    assert!(cost.lost_leases > 0, "{cost:?}");
    let of = |attempt: &&simq::metrics::Attempt| attempt.worker == blow.workers[0] && attempt.claimed <= blow.at;
    let late = outcome.record.attempts.iter().filter(of).filter(|attempt| attempt.fate == Fate::Lost).count();
    assert!(late > 0, "its late settlements were refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_an_open_transaction_a_job_is_free_at_once() {
    let text = entry("200ms", "kill-workers", "share = 0.5\nlasts = '100ms'");
    let mut scenario = busy(&text);
    scenario.workers.claim = simq::queue::ClaimMode::Transaction;
    scenario.workers.batch = 1;
    let outcome = survives(&scenario).await;
    let (_, cost, repeats) = single(&outcome);
    assert!(cost.lost_leases > 0 && repeats.iter().all(|repeat| repeat.cause == Cause::Killed), "{cost:?} {repeats:?}");
    assert!(outcome.record.jobs.iter().all(|job| job.retries == 0), "a transaction that breaks costs no retry");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_cost_failed_operations_and_no_job() {
    let outcome = survives(&busy(&entry("200ms", "cut-connections", "every = '200ms'"))).await;
    let cut: u64 = outcome.record.blows.iter().map(|blow| blow.hit).sum();
    assert!(cut >= 6, "{:?}", outcome.record.blows);
    assert!(outcome.summary.store_failures > 0, "the workers noticed");
    let blamed: u64 = costs(&outcome.record).iter().map(|cost| cost.store_failures).sum();
    assert_eq!(blamed, outcome.summary.store_failures, "and the blows are blamed for it");
}

async fn survives_a_restart(mode: &str) {
    let outcome = survives_on_its_own(&busy(&entry("300ms", "restart-database", &format!("mode = '{mode}'")))).await;
    let (blow, cost, _) = single(&outcome);
    assert!(blow.until.is_some_and(|until| until > blow.at), "{blow:?}");
    assert!(cost.store_failures > 0, "the workers noticed: {cost:?}");
    assert!(outcome.record.jobs.iter().all(|job| job.state == State::Completed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_in_order_costs_time_and_no_job() {
    survives_a_restart("fast").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_at_once_costs_time_and_no_job() {
    survives_a_restart("immediate").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_costs_time_and_no_job() {
    survives_a_restart("kill").await;
}

/// Nothing else would wake the workers before the horizon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_wait_for_news_hear_of_it_again_after_a_restart() {
    let mut scenario = busy(&entry("300ms", "restart-database", ""));
    scenario.workers.wait = simq::worker::Wait::Listen { at_most: std::time::Duration::from_secs(600) };
    scenario.horizon = std::time::Duration::from_secs(30);
    survives_on_its_own(&scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_snapshot_costs_no_job_and_is_let_go_with_the_run() {
    let outcome = survives(&busy(&entry("100ms", "hold-transaction", "lasts = '50s'"))).await;
    let (blow, cost, repeats) = single(&outcome);
    assert_eq!((cost.lost_leases, repeats.len()), (0, 0));
    assert!(blow.until.is_some_and(|until| until.since_start().as_secs() < 50), "{blow:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_clocks_change_nothing() {
    let ahead = entry("200ms", "skew-clock", "share = 0.5\nby = '+1h'");
    let behind = entry("400ms", "skew-clock", "share = 1.0\nby = '-1h'");
    let outcome = survives(&busy(&(ahead + &behind))).await;
    let hit: Vec<usize> = outcome.record.blows.iter().map(|blow| blow.workers.len()).collect();
    assert_eq!(hit, [2, 4]);
    assert_eq!((repeats(&outcome.record), outcome.summary.lost_leases, outcome.summary.store_failures), (vec![], 0, 0));
    let wrong: Vec<_> = outcome.record.attempts.iter().filter(|attempt| attempt.worker >= 4).collect();
    assert!(!wrong.is_empty(), "workers with wrong clocks did jobs");
    let ended = outcome.record.ended;
    assert!(wrong.iter().all(|attempt| attempt.due <= attempt.sent && attempt.settled.is_some_and(|settled| settled <= ended)));
}

#[tokio::test]
async fn a_database_that_is_not_simqs_own_is_not_restarted() {
    let scenario = busy(&entry("100ms", "restart-database", ""));
    let database = cluster::database().await;
    let error = simq::real::run(plan(&scenario, 0, &database, "simq_test")).await.unwrap_err().to_string();
    assert!(error.contains("not simq's own") && error.contains("--database-url"), "{error}");
}
