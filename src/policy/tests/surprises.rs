//! Surprises and faults of real systems, each shown or ruled out: the T-rows by number.

use super::*;

/// T-01, T-02, T-03: finite, not negative, not above a hard cap, and never falling, whatever n.
#[test]
fn t01_no_preset_overflows_at_any_retry() {
    for preset in preset::all() {
        let policy = preset.policy();
        let mut lower = 0.0;
        for n in [1, 31, 32, 33, 63, 64, 65, 310, 1024, u32::MAX] {
            let longest = policy.longest(n);
            let delay = policy.delay(n, None, &mut draw(7, n));
            assert!(delay <= longest, "{} n={n}: {delay:?} > {longest:?}", preset.id);
            if let (Some(cap), Order::CapLast | Order::CapBoth | Order::Clip) = (policy.cap, policy.order) {
                assert!(delay <= cap, "{} n={n}", preset.id);
            }
            if policy.jitter.is_stateless() && n <= 1024 {
                let low = cells(&policy, n).last().map_or(0.0, |cell| cell.low);
                assert!(low >= lower || policy.jitter.row().at_cap.is_some(), "{} n={n}: {low} < {lower}", preset.id);
                lower = low;
            }
        }
    }
}

/// T-05, T-06: jitter is spread over any base from a second up, and tower's own is not.
#[test]
fn t05_jitter_has_no_lumps_but_where_the_source_has() {
    for base in [1, 2, 10, 3600] {
        let backoff = Backoff::Constant { delay: Duration::from_secs(base) };
        for jitter in [Jitter::Full, Jitter::Equal, Jitter::Proportional { share: 0.1 }, Jitter::Row(Row::of(1.0, 1.99))] {
            assert!(distinct(&policy(backoff.clone(), jitter.clone(), None), 1, 10_000) >= 1000, "{jitter:?} on {base} s");
        }
        let split = policy(backoff, Jitter::Split { share: 0.99, second: S, cloned: false }, None);
        assert_eq!(distinct(&split, 1, 10_000), if base > 100 { distinct(&split, 1, 10_000) } else { base as usize });
    }
}

/// T-07: thirty slots, whatever n is.
#[test]
fn t07_faktory_has_thirty_slots_and_sidekiq_ten_per_retry() {
    for n in [1, 5, 10] {
        assert_eq!(distinct(&preset("faktory"), n, 10_000), 30);
        assert_eq!(distinct(&preset("sidekiq"), n, 10_000), 10 * n as usize);
    }
}

/// T-10: over whole seconds with both ends, half of all first retries come at once.
#[test]
fn t10_half_of_celerys_first_retries_come_at_once() {
    let policy = preset("celery.retry_backoff=True");
    let at_once = (0..10_000).filter(|job| policy.delay(1, None, &mut draw(*job, 1)).is_zero()).count();
    assert!((4800..5200).contains(&at_once), "{at_once}");
}

/// T-11: what is added after jitter has none.
#[test]
fn t11_an_outer_pad_is_not_jittered() {
    let cell = cells(&preset("activejob.polynomially_longer(j=.15)"), 1)[0];
    assert!((cell.low - 3.0).abs() < 1e-9 && (cell.high - 3.15).abs() < 1e-9, "1 s of the curve is jittered, 2 s are not");
}

/// T-12: a width that does not grow with the wait fades.
#[test]
fn t12_additive_jitter_fades_and_proportional_does_not() {
    let spread = |jitter, n| cells::relative_spread(cells(&policy(exponential(), jitter, None), n).last().expect("a cell"));
    assert!(spread(Jitter::Additive { spread: S }, 8) < 0.01);
    assert!((spread(Jitter::Proportional { share: 0.2 }, 8) - 0.4).abs() < 1e-9);
    let sidekiq: Vec<f64> = cells(&preset("sidekiq"), 10).iter().map(cells::relative_spread).collect();
    for (n, told) in [(1, 0.46), (2, 0.75), (5, 0.17), (7, 0.05), (10, 0.015)] {
        assert!((sidekiq[n - 1] - told).abs() < 0.01, "n={n}: {}", sidekiq[n - 1]);
    }
}

/// T-13: a symmetric jitter has no hole.
#[test]
fn t13_proportional_jitter_fills_its_middle() {
    let policy = policy(Backoff::Constant { delay: S }, Jitter::Proportional { share: 0.5 }, None);
    let mut bins = [0; 20];
    for job in 0..20_000 {
        let delay = policy.delay(1, None, &mut draw(job, 1)).as_secs_f64();
        bins[((delay - 0.5) * 20.0) as usize] += 1;
    }
    assert!(bins.iter().all(|count| (850..1150).contains(count)), "{bins:?}");
}

/// T-14: where the cap comes after jitter, every job waits exactly the cap in the end; where it comes before, none does.
#[test]
fn t14_mass_gathers_on_a_cap_that_comes_last() {
    let at_cap = |policy: &Policy, n: u32| {
        let cap = policy.cap.expect("a cap");
        (0..2000).filter(|job| policy.delay(n, None, &mut draw(*job, n)) == cap).count() as f64 / 2000.0
    };
    for id in ["librdkafka.retry", "azcore", "awa", "aws.go-v2.legacy", "linkerd", "finagle.equalJittered(1s,60s)"] {
        assert_eq!(at_cap(&preset(id), 20), 1.0, "{id}");
    }
    for id in
        ["celery.retry_backoff=True", "cenkalti", "backon.exponential+jitter", "aws.standard-2.0", "grpc.A6-example", "dramatiq"]
    {
        assert!(at_cap(&preset(id), 20) < 0.01, "{id}");
    }
    let clipped = Policy { order: Order::Clip, ..policy(exponential(), Jitter::Equal, Some(60 * S)) };
    assert!(at_cap(&clipped, 5) < 0.01 && clipped.longest(1000) <= 60 * S);
}

/// T-15: a cap on both sides of jitter holds half of the mass.
#[test]
fn t15_half_of_kafkas_delays_are_the_cap() {
    let policy = preset("kafka.java.reconnect");
    let at_cap = (0..10_000).filter(|job| policy.delay(10, None, &mut draw(*job, 10)) == S).count();
    assert!((4800..5200).contains(&at_cap), "{at_cap}");
    assert!((cells(&policy, 10)[9].on_cap - 0.5).abs() < 0.01);
}

/// T-16: a decorrelated jitter that is cut gathers mass on its cap, one that is bound does not.
#[test]
fn t16_decorrelated_jitter_gathers_on_its_cap_unless_it_is_bound() {
    let share = |id: &str| {
        let policy = preset(id);
        let (mut last, mut on_cap) = (None, 0);
        for n in 1..=20_000 {
            let delay = policy.delay(n, last, &mut draw(1, n));
            on_cap += u32::from(delay == 60 * S);
            last = Some(delay);
        }
        f64::from(on_cap) / 20_000.0
    };
    let cut = share("aws-blog.decorrelated(1,60)");
    assert!((cut - 0.34).abs() < 0.02, "{cut}");
    assert_eq!(share("polly-contrib.AwsDecorrelated(1,60)"), 0.0);
}

/// T-17: a cap before jitter is exceeded by as much as jitter adds, and we say so.
#[test]
fn t17_a_soft_cap_is_exceeded_by_the_jitters_factor() {
    for (id, cap, factor) in [
        ("cenkalti", 60.0, 1.5),
        ("grpc.A6-example", 1.0, 1.2),
        ("backon.exponential+jitter", 60.0, 2.0),
        ("k8s.reflector", 30.0, 2.0),
    ] {
        assert!((cells(&preset(id), 30)[29].high - cap * factor).abs() < 1e-6, "{id}");
    }
}

/// T-18, T-19: a floor after jitter removes it, and a first delay that is exact brings the herd back in step.
#[test]
fn t18_first_delays_that_have_no_jitter() {
    for id in [
        "stripe-python",
        "stripe-node",
        "stripe-go",
        "grpc.connection(go)",
        "finagle.equalJittered(1s,60s)",
        "azure-core.python",
        "kubelet.CrashLoopBackOff",
    ] {
        assert_eq!(distinct(&preset(id), 1, 1000), 1, "{id}");
    }
    assert_eq!(distinct(&preset("stripe-node"), 2, 1000), 1, "both default retries of Stripe for Node");
    assert!(distinct(&preset("grpc.A6-example"), 1, 1000) > 990);
}

/// T-20: reaching the cap ends the retries one try early.
#[test]
fn t20_reaching_the_cap_may_end_the_retries() {
    let policy = Policy {
        limit: Limit { at_cap: true, ..Limit::default() },
        ..policy(Backoff::Exponential { base: S, factor: 2.0 }, Jitter::None, Some(5 * S))
    };
    let after: Vec<Decision> =
        (0..4).map(|spent| policy.decide(&memory(spent, 99), &Outcome::status(500), &mut draw(1, 1))).collect();
    assert_eq!(after, [secs(1), secs(2), secs(4), Decision::Discard(Why::Exhausted)]);
    let conflicts = preset("k8s.retry.DefaultBackoff");
    let tries = (0..9)
        .filter(|spent| {
            matches!(conflicts.decide(&memory(*spent, 3), &Outcome::status(409), &mut draw(1, 1)), Decision::Retry { .. })
        })
        .count();
    assert_eq!(tries, 3, "three sleeps only");
}

/// T-23: jobs do not share draws; tower's do, since its generator is cloned into each request.
#[test]
fn t23_jobs_do_not_share_draws_but_with_a_cloned_generator() {
    assert!(distinct(&preset("river"), 3, 10_000) > 9_900);
    for n in 1..=10 {
        assert_eq!(distinct(&preset("tower.ExponentialBackoffMaker.default"), n, 1000), 1);
    }
    assert!(distinct(&preset("linkerd"), 3, 1000) > 990);
}

/// T-24, T-25: the same seed gives the same delays, another seed others; nothing depends on a clock or on a process.
#[test]
fn t24_the_seed_decides_and_nothing_else() {
    let delays = |seed: u64| {
        let policy = preset("river");
        (1..50).map(|n| policy.delay(n, None, &mut Seed(seed).draw(Stream::Jitter, JobId(1), n))).collect::<Vec<_>>()
    };
    assert_eq!(delays(1), delays(1));
    assert!(delays(1).iter().zip(delays(2)).all(|(one, other)| *one != other));
}

/// T-27: a draw that is frozen is the same factor for all jobs, and another in another run.
#[test]
fn t27_a_frozen_draw_is_shared_by_all_jobs_of_a_run() {
    let policy =
        Policy { jitter: Jitter::Frozen { low: 0.8, high: 1.2, row: Row::NONE }, ..preset("masstransit.exponential(1s,60s,1s)") };
    assert_eq!(distinct(&policy, 3, 1000), 1);
    let others: Vec<Duration> =
        (0..20).map(|seed| policy.delay(3, None, &mut Seed(seed).draw(Stream::Jitter, JobId(1), 3))).collect();
    assert!(others.iter().any(|other| *other != others[0]));
}

/// T-28, T-29: jitter on jitter outgrows the curve; jitter that rises never falls.
#[test]
fn t29_a_rising_jitter_never_decreases() {
    let policy = preset("finagle.decorrelatedJittered(1s,60s)");
    for job in 0..100 {
        let mut last = None;
        for n in 1..30 {
            let delay = policy.delay(n, last, &mut draw(job, n));
            assert!(Some(delay) >= last);
            last = Some(delay);
        }
    }
}

/// T-30: a base that is raised to the n-th.
#[test]
fn t30_tokio_retry_raises_its_base() {
    let waits: Vec<u64> = cells(&preset("tokio-retry.from_millis(500)"), 3).iter().map(|cell| cell.low as u64).collect();
    assert_eq!(waits, [0, 250, 125_000], "half a second, four minutes, a day and a half");
}

/// T-34: a delay of zero is zero, and one below a second is what it is.
#[test]
fn t34_short_delays_are_not_taken_for_unset() {
    for ms in [0, 400] {
        let policy = policy(Backoff::Constant { delay: Duration::from_millis(ms) }, Jitter::None, None);
        assert_eq!(policy.delay(1, None, &mut draw(1, 1)).as_millis(), u128::from(ms));
    }
}

/// T-36: asking for a delay advances nothing.
#[test]
fn t36_asking_twice_gives_the_same_delay() {
    for preset in preset::all() {
        let policy = preset.policy();
        assert_eq!(policy.delay(4, Some(S), &mut draw(3, 4)), policy.delay(4, Some(S), &mut draw(3, 4)), "{}", preset.id);
    }
}

/// T-45: hints of any size leave a decision.
#[test]
fn t45_hints_of_any_size_are_decided() {
    for preset in preset::all() {
        for hint in [Duration::ZERO, 1000 * S, Duration::from_secs(10_000_000_000), Duration::MAX] {
            let outcome = Outcome::Status { code: 503, retry_after: Some(hint) };
            let decision = preset.policy().decide(&memory(0, 5), &outcome, &mut draw(1, 1));
            assert!(!matches!(decision, Decision::Complete), "{}", preset.id);
        }
    }
    let urllib3 = preset("urllib3.backoff_factor=1");
    assert_eq!(hinted(&urllib3, 503, Duration::from_secs(1_000_000)), secs(21_600), "six hours at most");
}

/// T-44, T-46: a hint that replaces brings all back together, one that spreads does not; a lower bound is never undercut.
#[test]
fn t46_jitter_never_undercuts_a_hint_that_is_a_bound() {
    let mut policy = policy(exponential(), Jitter::Full, None);
    let delays = |policy: &Policy| {
        let outcome = Outcome::Status { code: 429, retry_after: Some(5 * S) };
        let mut delays: Vec<Duration> = (0..1000)
            .map(|job| match policy.decide(&memory(3, 9), &outcome, &mut draw(job, 4)) {
                Decision::Retry { after } => after,
                other => panic!("{other:?}"),
            })
            .collect();
        delays.sort();
        (delays[0], {
            delays.dedup();
            delays.len()
        })
    };
    policy.retry_after = RetryAfter::AtLeast;
    assert!(delays(&policy).0 >= 5 * S);
    policy.retry_after = RetryAfter::Replace;
    assert_eq!(delays(&policy), (5 * S, 1));
    policy.retry_after = RetryAfter::Spread { share: 0.5, longest: 300 * S };
    assert!(delays(&policy).0 >= 5 * S && delays(&policy).1 > 990);
}

/// T-47, T-48, T-49: a hint on a 429 is heeded; on a 404 it makes a retry only where the source says so; a long one may end it.
#[test]
fn t48_a_hint_may_make_a_final_status_retryable() {
    assert_eq!(hinted(&preset("azure-core.python"), 404, 3 * S), secs(3));
    assert_eq!(hinted(&preset("azcore"), 404, 3 * S), Decision::Discard(Why::Permanent));
    assert_eq!(hinted(&preset("azcore"), 429, 61 * S), Decision::Discard(Why::Exhausted));
    assert_eq!(
        hinted(&preset("reqwest-retry.default"), 429, 3600 * S),
        hinted(&preset("reqwest-retry.default"), 429, S),
        "ignored"
    );
}

/// T-55: a plain 429 is throttling, and to AWS's older standard it is no reason to retry.
#[test]
fn t55_a_429_counts_as_throttling() {
    assert_eq!(preset("aws.2026.transient").class(&Outcome::status(429)), Class::Throttled);
    assert_eq!(preset("aws.standard-2.0").class(&Outcome::status(429)), Class::Fatal);
    assert_eq!(Policy::default().class(&Outcome::status(429)), Class::Throttled);
}
