//! State between jobs and workers: who shares it, and what it does to decisions.

use std::time::Duration;

use super::*;
use crate::policy::{Backoff, Breaker, Budget, BudgetRule, Classes, Counter, Pattern, RetryAfter, Trip};

const S: Duration = Duration::from_secs(1);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn memory(retries: u32) -> Memory {
    Memory { retries, max_retries: 5, last_delay: None, age: Duration::ZERO }
}

fn constant() -> Policy {
    Policy { backoff: Backoff::Constant { delay: S }, classify: true, ..Policy::default() }
}

fn concurrent(most: u32, scope: Scope) -> Policy {
    Policy { budget: Some(Budget { rule: BudgetRule::Concurrent { most, share: 0.0 }, scope }), ..constant() }
}

fn guards(count: u32) -> Vec<Guard> {
    let shared = Shared::default();
    (0..count).map(|worker| Guard::new(Seed(1), worker, shared.clone())).collect()
}

/// The scope flips results: three retries at once are three per worker, or three in all.
#[test]
fn who_shares_a_budget_decides_what_it_allows() {
    for (scope, allowed) in [(Scope::Worker, 12), (Scope::Process, 3), (Scope::Shared, 3), (Scope::Job, 20)] {
        let policy = concurrent(3, scope);
        let mut guards = guards(4);
        let retried = (0..20_u64)
            .filter(|job| {
                let guard = &mut guards[(job % 4) as usize];
                let _ = guard.admit(&policy, at(0), JobId(*job), 1);
                matches!(guard.decide(&policy, at(1), JobId(*job), &memory(0), &Outcome::status(503)), Decision::Retry { .. })
            })
            .count();
        assert_eq!(retried, allowed, "{scope:?}");
    }
}

/// T-51: Envoy's guard of three concurrent retries, and Istio, which takes it away.
#[test]
fn t51_istio_retries_what_envoy_refuses() {
    let retried = |id: &str| {
        let policy = crate::policy::preset::find(id).expect("a preset").policy();
        let mut guard = guards(1).remove(0);
        (0..100)
            .filter(|job| {
                matches!(guard.decide(&policy, at(1), JobId(*job), &memory(0), &Outcome::status(503)), Decision::Retry { .. })
            })
            .count()
    };
    assert_eq!((retried("envoy"), retried("istio")), (3, 100));
}

/// T-54: a budget is reported, not only configured.
#[test]
fn t54_a_refusal_is_said_and_counted() {
    let policy = concurrent(1, Scope::Shared);
    let mut guard = guards(1).remove(0);
    guard.decide(&policy, at(0), JobId(1), &memory(0), &Outcome::status(503));
    assert_eq!(guard.said(), None);
    assert_eq!(guard.decide(&policy, at(0), JobId(2), &memory(0), &Outcome::status(503)), Decision::Discard(Why::Exhausted));
    assert_eq!(guard.said(), Some("retry budget spent"));
    let report = guard.report(&policy, at(0), JobId(2));
    assert_eq!((report.balance, report.refused), (Some(0.0), 1));
}

/// T-39: what is not counted goes on for ever, and the run's end alone stops it.
#[test]
fn t39_uncounted_failures_spend_no_retries() {
    let policy = Policy {
        classes: Classes { uncounted: vec![Pattern::Refused], ..Classes::default() },
        max_retries: Some(2),
        backoff: Backoff::Linear { base: S, step: S },
        ..constant()
    };
    assert_eq!(policy.row_limit(), Some(i32::MAX as u32), "the row has no limit of its own");
    let mut guard = guards(1).remove(0);
    let mut decide = |retries, outcome| guard.decide(&policy, at(0), JobId(1), &memory(retries), &outcome);
    for retries in 0..100 {
        assert_eq!(decide(retries, Outcome::Refused), Decision::Retry { after: S });
    }
    assert_eq!(decide(100, Outcome::status(500)), Decision::Retry { after: S });
    assert_eq!(decide(101, Outcome::status(500)), Decision::Retry { after: 2 * S });
    assert_eq!(decide(102, Outcome::status(500)), Decision::Discard(Why::Exhausted));
}

/// ActiveJob's counters: each kind of failure has its own.
#[test]
fn kinds_of_failure_may_be_counted_apart() {
    let policy = Policy { counter: Counter { by_failure: true, ..Counter::default() }, max_retries: Some(2), ..constant() };
    let mut guard = guards(1).remove(0);
    let mut retries = 0;
    let mut decide = |outcome| {
        retries += 1;
        guard.decide(&policy, at(0), JobId(1), &memory(retries - 1), &outcome)
    };
    let again = Decision::Retry { after: S };
    assert_eq!(
        [decide(Outcome::TimedOut), decide(Outcome::TimedOut), decide(Outcome::status(500)), decide(Outcome::status(500))],
        [again; 4]
    );
    assert_eq!(decide(Outcome::status(500)), Decision::Discard(Why::Exhausted));
}

#[test]
fn a_hint_may_begin_the_schedule_anew() {
    let policy = Policy {
        retry_after: RetryAfter::Restart,
        backoff: Backoff::Linear { base: S, step: S },
        max_retries: Some(9),
        ..constant()
    };
    let mut guard = guards(1).remove(0);
    let mut decide = |retries, outcome| guard.decide(&policy, at(0), JobId(1), &memory(retries), &outcome);
    assert_eq!(decide(0, Outcome::status(503)), Decision::Retry { after: S });
    assert_eq!(decide(1, Outcome::status(503)), Decision::Retry { after: 2 * S });
    assert_eq!(decide(2, Outcome::Status { code: 503, retry_after: Some(7 * S) }), Decision::Retry { after: 7 * S });
    assert_eq!(decide(3, Outcome::status(503)), Decision::Retry { after: S }, "from the first again");
}

#[test]
fn a_shared_breaker_opens_for_all_and_one_of_a_workers_own_does_not() {
    for (scope, held) in [(Scope::Shared, true), (Scope::Worker, false)] {
        let breaker = Breaker { trip: Trip::Consecutive { failures: 3 }, open: 5 * S, jitter: 0.0, probes: 1, on: vec![], scope };
        let policy = Policy { breaker: Some(breaker), ..constant() };
        let mut guards = guards(2);
        for job in 0..3 {
            assert!(guards[0].admit(&policy, at(0), JobId(job), 1).is_ok());
            guards[0].decide(&policy, at(0), JobId(job), &memory(0), &Outcome::TimedOut);
        }
        assert_eq!(guards[0].admit(&policy, at(1), JobId(9), 1), Err(at(5000)));
        assert_eq!(guards[1].admit(&policy, at(1), JobId(9), 1).is_err(), held, "{scope:?}");
    }
}

#[test]
fn state_of_jobs_is_forgotten_with_them() {
    let policy = concurrent(3, Scope::Job);
    let mut guard = guards(1).remove(0);
    for job in 0..100 {
        guard.decide(&policy, at(0), JobId(job), &memory(0), &Outcome::status(503));
        guard.decide(&policy, at(0), JobId(job), &memory(1), &Outcome::Ok);
    }
    assert!(guard.shared.0.lock().expect("nobody panicked").jobs.is_empty());
}
