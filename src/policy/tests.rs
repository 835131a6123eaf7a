//! A policy by itself: decisions, bounds, spread, and the faults that others had. Names with a number are named after the list of known
//! faults of retry code that this engine is held against.

mod surprises;

use super::*;
use crate::job::JobId;
use crate::policy::cells::cells;
use crate::rng::{Seed, Stream};
use proptest::prelude::*;

const S: Duration = Duration::from_secs(1);

fn policy(backoff: Backoff, jitter: Jitter, cap: Option<Duration>) -> Policy {
    Policy { backoff, cap, jitter, classify: true, ..Policy::default() }
}

fn exponential() -> Backoff {
    Backoff::Exponential { base: 2 * S, factor: 2.0 }
}

fn preset(id: &str) -> Policy {
    preset::find(id).unwrap_or_else(|| panic!("{id}")).policy()
}

fn memory(retries: u32, max_retries: u32) -> Memory {
    Memory { retries, max_retries, last_delay: None, age: Duration::ZERO }
}

fn draw(job: u64, attempt: u32) -> Draw {
    Seed(1).draw(Stream::Jitter, JobId(job), attempt)
}

fn distinct(policy: &Policy, n: u32, jobs: u64) -> usize {
    let mut delays: Vec<Duration> = (0..jobs).map(|job| policy.delay(n, None, &mut draw(job, n))).collect();
    delays.sort();
    delays.dedup();
    delays.len()
}

fn secs(s: u64) -> Decision {
    Decision::Retry { after: Duration::from_secs(s) }
}

#[test]
fn the_articles_schedule_is_two_four_eight_and_then_gives_up() {
    let policy = policy(exponential(), Jitter::None, None);
    let fail = Outcome::status(503);
    let after: Vec<Decision> = (0..4).map(|spent| policy.decide(&memory(spent, 3), &fail, &mut draw(1, spent + 1))).collect();
    assert_eq!(after, [secs(2), secs(4), secs(8), Decision::Discard(Why::Exhausted)]);
}

#[test]
fn a_permanent_failure_is_given_up_at_once_unless_nobody_looks() {
    let mut policy = policy(exponential(), Jitter::None, None);
    let fail = Outcome::status(422);
    assert_eq!(policy.decide(&memory(0, 3), &fail, &mut draw(1, 1)), Decision::Discard(Why::Permanent));
    policy.classify = false;
    assert!(matches!(policy.decide(&memory(0, 3), &fail, &mut draw(1, 1)), Decision::Retry { .. }));
}

fn hinted(policy: &Policy, code: u16, hint: Duration) -> Decision {
    policy.decide(&memory(0, 3), &Outcome::Status { code, retry_after: Some(hint) }, &mut draw(1, 1))
}

#[test]
fn retry_after_is_heeded_as_told() {
    let mut policy = policy(exponential(), Jitter::None, None);
    let mut after = |rule, hint: u64| {
        policy.retry_after = rule;
        hinted(&policy, 429, Duration::from_secs(hint))
    };
    assert_eq!(after(RetryAfter::Ignore, 5), secs(2));
    assert_eq!(after(RetryAfter::AtLeast, 5), secs(5));
    assert_eq!(after(RetryAfter::AtLeast, 1), secs(2));
    assert_eq!(after(RetryAfter::Replace, 1), secs(1));
    assert_eq!(after(RetryAfter::Within { above: 5 * S }, 1), secs(2));
    assert_eq!(after(RetryAfter::Within { above: 5 * S }, 6), secs(6));
    assert_eq!(after(RetryAfter::Within { above: 5 * S }, 60), secs(7));
    assert_eq!(after(RetryAfter::Between { low: 3 * S, high: 9 * S }, 1), secs(3));
    assert_eq!(after(RetryAfter::Between { low: 3 * S, high: 9 * S }, 10), secs(9));
    assert_eq!(after(RetryAfter::GiveUpAbove { longest: 60 * S, at_least: false }, 1), secs(1));
    assert_eq!(after(RetryAfter::GiveUpAbove { longest: 60 * S, at_least: true }, 1), secs(2));
    assert_eq!(after(RetryAfter::Spread { share: 0.5, longest: 300 * S }, 301), secs(2));
    let Decision::Retry { after: spread } = after(RetryAfter::Spread { share: 0.5, longest: 300 * S }, 10) else {
        panic!("a retry")
    };
    assert!(spread > 10 * S && spread < 15 * S);
}

#[test]
fn statuses_whose_hints_do_not_count_are_not_heeded() {
    let policy = preset("go-retryablehttp.DefaultBackoff");
    assert_eq!((hinted(&policy, 429, 9 * S), hinted(&policy, 500, 9 * S)), (secs(9), secs(1)));
}

#[test]
fn a_schedule_may_be_chosen_by_the_kind_of_failure() {
    let constant = |s: u64| policy(Backoff::Constant { delay: Duration::from_secs(s) }, Jitter::None, None);
    let by_failure = vec![
        (Kind::Timeout, constant(1)),
        (Kind::Throttled, constant(2)),
        (Kind::Server, constant(3)),
        (Kind::Refused, constant(4)),
    ];
    let policy = Policy { by_failure, ..constant(9) };
    let after = |outcome| policy.decide(&memory(0, 3), &outcome, &mut draw(1, 1));
    assert_eq!(after(Outcome::TimedOut), secs(1));
    assert_eq!(after(Outcome::status(429)), secs(2));
    assert_eq!(after(Outcome::status(503)), secs(3));
    assert_eq!((after(Outcome::Refused), after(Outcome::Reset)), (secs(4), secs(4)));
    assert_eq!(after(Outcome::status(408)), secs(9));
}

#[test]
fn time_ends_retries_before_or_after_the_next_delay_is_added() {
    let mut policy =
        Policy { limit: Limit { elapsed: Some(10 * S), ..Limit::default() }, ..policy(exponential(), Jitter::None, None) };
    let at = |policy: &Policy, age: u64| {
        let memory = Memory { age: Duration::from_secs(age), ..memory(0, 9) };
        policy.decide(&memory, &Outcome::status(500), &mut draw(1, 1))
    };
    assert_eq!((at(&policy, 9), at(&policy, 10)), (secs(2), Decision::Discard(Why::Exhausted)));
    policy.limit.with_delay = true;
    assert_eq!((at(&policy, 8), at(&policy, 9)), (secs(2), Decision::Discard(Why::Exhausted)));
}

/// A scaled policy is the same picture in another time.
#[test]
fn a_scaled_policy_gives_scaled_delays() {
    for preset in preset::all() {
        let (policy, fast) = (preset.policy(), preset.policy().scaled(0.001));
        for (slow, fast) in cells(&policy, 10).iter().zip(cells(&fast, 10)) {
            if slow.high > 1e-3 && slow.high < 1e9 {
                let near = |slow: f64, fast: f64| (slow * 0.001 - fast).abs() <= 3e-6 * slow + 3e-9;
                assert!(near(slow.low, fast.low) && near(slow.high, fast.high), "{}: {slow:?} {fast:?}", preset.id);
            }
        }
    }
}

#[test]
fn randomised_retries_of_node_are_sorted() {
    let policy = Policy { backoff: Backoff::Exponential { base: S, factor: 1.1 }, ..preset("node-retry.randomize") };
    for job in 0..50 {
        let delays: Vec<Duration> = (1..=10).map(|n| policy.delay(n, None, &mut draw(job, n))).collect();
        assert!(delays.is_sorted(), "{delays:?}");
    }
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    let ms = |range: std::ops::Range<u64>| range.prop_map(Duration::from_millis);
    prop_oneof![
        Just(Backoff::None),
        ms(0..10_000).prop_map(|delay| Backoff::Constant { delay }),
        (ms(0..10_000), ms(0..10_000)).prop_map(|(base, step)| Backoff::Linear { base, step }),
        (ms(1..10_000), 1.0..4.0_f64).prop_map(|(base, factor)| Backoff::Exponential { base, factor }),
        (ms(1..10_000), 1.0..4.0_f64).prop_map(|(base, factor)| Backoff::Stepped {
            base,
            factor,
            unit: Duration::from_millis(1)
        }),
        (ms(1..10_000), 0..3_u32, 1.0..5.0_f64).prop_map(|(base, offset, power)| Backoff::Polynomial { base, offset, power }),
        ms(1..10_000).prop_map(|base| Backoff::Fibonacci { base }),
        proptest::collection::vec(ms(0..10_000), 1..6).prop_map(|mut delays| {
            delays.sort();
            Backoff::List { delays, tail: Tail::Last }
        }),
    ]
}

fn any_row() -> impl Strategy<Value = Row> {
    (0.0..=1.0_f64, 0.0..=1.0_f64, 0..2000_u64, 0..100_u64).prop_map(|(p, wide, w0, w1)| Row {
        w0: Duration::from_millis(w0),
        w1: Duration::from_millis(w1),
        ..Row::of(p, p + wide)
    })
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        (any::<bool>(), any::<bool>()).prop_map(|(bound, rising)| Jitter::Decorrelated { bound, rising }),
        Just(Jitter::Timeline),
        Just(Jitter::Compounding),
        (0.0..=1.0_f64, any::<bool>()).prop_map(|(share, cloned)| Jitter::Split { share, second: S, cloned }),
        (0.0..=1.0_f64).prop_map(|share| Jitter::Proportional { share }),
        (0..5_000_u64).prop_map(|ms| Jitter::Additive { spread: Duration::from_millis(ms) }),
        any_row().prop_map(Jitter::Row),
        any_row().prop_map(|row| Jitter::Frozen { low: 0.8, high: 1.2, row }),
    ]
}

prop_compose! {
    fn any_policy()(
        backoff in any_backoff(), jitter in any_jitter(), cap in proptest::option::of(10_000..100_000_u64),
        floor in proptest::option::of(0..5_000_u64), pads in (0..5_000_u64, 0..2_000_u64, 0..2_000_u64),
        order in prop_oneof![Just(Order::CapFirst), Just(Order::CapLast), Just(Order::CapBoth), Just(Order::Clip)],
        first in prop_oneof![Just(First::Scheduled), Just(First::Free), Just(First::Exact)],
        grain in prop_oneof![Just(0_u64), Just(1), Just(1000)], until in proptest::option::of(1..50_u32),
        ends in prop_oneof![Just(Ends::Down), Just(Ends::Both)],
    ) -> Policy {
        let ms = Duration::from_millis;
        Policy {
            floor: floor.map(ms), plus: ms(pads.0), minus: ms(pads.1), pad: ms(pads.2), order, first,
            grain: Grain { ends, ..Grain::of(ms(grain)) }, counter: Counter { until, ..Counter::default() },
            ..policy(backoff, jitter, cap.map(ms))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_delay_is_within_its_bounds_for_every_retry(
        policy in any_policy(), job in any::<u64>(),
        n in prop_oneof![1..70_u32, Just(310), Just(1024), Just(u32::MAX)], last in proptest::option::of(0..100_000_u64),
    ) {
        let last = last.map(Duration::from_millis);
        let delay = policy.delay(n, last, &mut draw(job, n));
        prop_assert!(delay <= policy.longest(n), "{delay:?} > {:?}", policy.longest(n));
        prop_assert_eq!(delay, policy.delay(n, last, &mut draw(job, n)), "asking twice gives the same delay");
        if let Some(floor) = policy.floor && (n > 1 || policy.first != First::Free) {
            prop_assert!(delay >= floor);
        }
        if let (Some(cap), Order::CapLast | Order::CapBoth | Order::Clip) = (policy.cap, policy.order) {
            prop_assert!(delay <= cap, "a hard cap");
        }
        if n < 1000 && policy.jitter.is_stateless() {
            let cell = *cells(&policy, n).last().expect("one");
            let secs = delay.as_secs_f64();
            prop_assert!(secs >= cell.low - 2e-9 - cell.low * 1e-9 && secs <= cell.high + 2e-9 + cell.high * 1e-9, "{secs} {cell:?}");
            prop_assert!(cell.mean >= cell.low - 1e-6 - cell.low * 1e-6 && cell.mean <= cell.high + 1e-6 + cell.high * 1e-6, "{cell:?}");
        }
    }

    #[test]
    fn the_curve_never_falls(backoff in any_backoff(), n in prop_oneof![1..2000_u32, Just(u32::MAX - 1)]) {
        prop_assert!(backoff.before_retry(n) <= backoff.before_retry(n + 1));
    }

    #[test]
    fn the_lower_end_never_falls_without_a_memory(policy in any_policy(), n in 1..60_u32) {
        let policy = Policy { grain: Grain::NONE, ..policy };
        if !policy.jitter.is_stateless() {
            return Ok(());
        }
        let cells = cells(&policy, n + 1);
        let (here, next) = (cells[n as usize - 1], cells[n as usize]);
        prop_assume!(n > 1 || policy.first == First::Scheduled);
        prop_assert!(next.low >= here.low - here.low * 1e-9, "{here:?} {next:?}");
    }

    #[test]
    fn a_scaled_policy_stays_within_its_bounds(policy in any_policy(), factor in 0.000_1..10.0_f64, n in 1..40_u32) {
        let scaled = policy.scaled(factor);
        prop_assert!(scaled.delay(n, None, &mut draw(1, n)) <= scaled.longest(n));
    }
}

#[test]
fn jitter_spreads_over_jobs_that_failed_together() {
    for jitter in [
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated { bound: false, rising: false },
        Jitter::Timeline,
        Jitter::Proportional { share: 0.1 },
        Jitter::Additive { spread: S },
    ] {
        let policy = policy(exponential(), jitter.clone(), None);
        let found = distinct(&policy, 1, 10_000);
        assert!(found > 9_900, "{jitter:?} gave {found} values");
    }
}
