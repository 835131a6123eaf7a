//! Libraries that retry anything, and the articles that everybody copies from.

use super::build::*;
use super::{Group, Preset};
use crate::policy::{Ends, Jitter, Order, Policy};

const fn preset(
    id: &'static str,
    system: &'static str,
    version: &'static str,
    source: &'static str,
    policy: fn() -> Policy,
) -> Preset {
    Preset { id, aliases: &[], group: Group::Libraries, system, version, source, policy }
}

const fn also(aliases: &'static [&'static str], preset: Preset) -> Preset {
    Preset { aliases, ..preset }
}

/// The half-second, one-and-a-half curve of Google's HTTP client for Java, as copied by cenkalti and by Rust's `backoff`.
fn half_second() -> Policy {
    exponential(0.5, 1.5).cap(60.0, Order::CapFirst).times_closed(0.5, 1.5)
}

const SIMULATOR: &str = "src/backoff_simulator.py";

fn article(jitter: Jitter) -> Policy {
    exponential(2.0, 2.0).cap(60.0, Order::CapFirst).jitter(jitter)
}

pub(super) const PRESETS: &[Preset] = &[
    also(
        &["cenkalti-backoff", "cenkalti/backoff"],
        preset("cenkalti", "cenkalti/backoff", "v4.3.0", "exponential.go", || half_second().within(900.0, true)),
    ),
    preset("cenkalti.v5", "cenkalti/backoff", "v5", "exponential.go", || {
        half_second().within(900.0, true).heeds(crate::policy::RetryAfter::Restart, &[])
    }),
    preset("rust.backoff", "backoff for Rust", "0.4.0", "src/exponential.rs", || half_second().within(900.0, false)),
    also(&["tenacity"], preset("tenacity.default", "Tenacity", "9.2.1", "tenacity/wait.py", || at_once().retries(ENDLESS))),
    preset("tenacity.wait_random_exponential", "Tenacity", "9.2.1", "tenacity/wait.py", || {
        exponential(1.0, 2.0).times_closed(0.0, 1.0).retries(ENDLESS)
    }),
    preset("tenacity.wait_exponential_jitter", "Tenacity", "9.2.1", "tenacity/wait.py", || {
        let policy = exponential(1.0, 2.0).widened(1.0, 0.0).retries(ENDLESS);
        Policy { jitter: closed(policy.jitter.clone()), ..policy }
    }),
    also(
        &["litl.backoff", "backoff.expo"],
        preset("litl.backoff.expo", "backoff for Python", "2.2.1", "backoff/_wait_gen.py", || {
            exponential(1.0, 2.0).times_closed(0.0, 1.0).retries(ENDLESS)
        }),
    ),
    also(
        &["resilience4j"],
        preset("resilience4j.default", "resilience4j", "v2.4.0", "resilience4j-core/IntervalFunction.java", || {
            constant(0.5).retries(2)
        }),
    ),
    also(
        &["resilience4j.exponential-random"],
        preset("resilience4j.exponentialRandom", "resilience4j", "v2.4.0", "resilience4j-core/IntervalFunction.java", || {
            stepped(0.5, 1.5).times(0.5, 1.5).grain(MS, Ends::Cut).retries(2)
        }),
    ),
    also(
        &["spring-retry"],
        preset("spring-retry.@Retryable", "Spring Retry", "c8977dd", "src/main/java/org/springframework/retry/backoff/", || {
            constant(1.0).retries(2)
        }),
    ),
    preset("spring-retry.Exponential", "Spring Retry", "c8977dd", "src/main/java/org/springframework/retry/backoff/", || {
        exponential(0.1, 2.0).cap(30.0, Order::CapFirst).retries(2)
    }),
    preset(
        "spring-retry.ExponentialRandom",
        "Spring Retry",
        "c8977dd",
        "src/main/java/org/springframework/retry/backoff/",
        || exponential(0.1, 2.0).times(1.0, 2.0).cap(30.0, Order::CapBoth).grain(MS, Ends::Cut).retries(2),
    ),
    also(
        &["spring-framework7"],
        preset(
            "spring-framework7.ExponentialBackOff",
            "Spring Framework 7",
            "91eb4264",
            "spring-core/util/backoff/ExponentialBackOff.java",
            || stepped(2.0, 1.5).cap(30.0, Order::Clip).retries(ENDLESS),
        ),
    ),
    also(
        &["spring-framework7.default"],
        preset(
            "spring-framework7.RetryPolicy",
            "Spring Framework 7",
            "91eb4264",
            "spring-core/core/retry/RetryPolicy.java",
            || constant(1.0).retries(3),
        ),
    ),
    also(
        &["backon"],
        preset("backon.exponential", "backon", "v1.5.2", "backon/src/backoff/exponential.rs", || {
            exponential(1.0, 2.0).cap(60.0, Order::CapFirst).retries(3)
        }),
    ),
    preset("backon.exponential+jitter", "backon", "v1.5.2", "backon/src/backoff/exponential.rs", || {
        exponential(1.0, 2.0).cap(60.0, Order::CapFirst).times(1.0, 2.0).retries(3)
    }),
    also(
        &["tokio-retry"],
        preset("tokio-retry.from_millis(10)", "tokio-retry", "0.3", "src/strategy/exponential_backoff.rs", || {
            exponential(0.01, 10.0)
        }),
    ),
    preset("tokio-retry.from_millis(10)+jitter", "tokio-retry", "0.3", "src/strategy/jitter.rs", || {
        exponential(0.01, 10.0).times(0.0, 1.0)
    }),
    preset("tokio-retry.from_millis(500)", "tokio-retry", "0.3", "src/strategy/exponential_backoff.rs", || {
        exponential(0.5, 500.0)
    }),
    also(
        &["retry-policies"],
        preset("retry-policies.default", "retry-policies", "v0.5.1", "src/policies/exponential_backoff.rs", || {
            exponential(1.0, 2.0).cap(1800.0, Order::CapFirst).times(0.0, 1.0)
        }),
    ),
    preset("retry-policies.bounded", "retry-policies, bounded jitter", "v0.5.1", "src/policies/exponential_backoff.rs", || {
        exponential(1.0, 2.0).cap(1800.0, Order::CapFirst).times(0.5, 1.0).floor(1.0)
    }),
    also(
        &["tower"],
        preset("tower.ExponentialBackoffMaker.default", "tower", "0.5.3", "tower/src/retry/backoff.rs", || {
            exponential(0.05, 2.0).jitter(Jitter::Split { share: 0.99, second: SECOND, cloned: true }).fifth()
        }),
    ),
    also(
        &["p-retry"],
        preset("node-retry", "node-retry, p-retry", "v0.13.1", "lib/retry.js", || exponential(1.0, 2.0).retries(10)),
    ),
    preset("node-retry.randomize", "node-retry, randomised", "v0.13.1", "lib/retry.js", || {
        exponential(1.0, 2.0).jitter(Jitter::Sorted { row: crate::policy::Row::of(1.0, 2.0) }).retries(10)
    }),
    also(
        &["aws-blog.expo"],
        preset("aws-blog.expo(1,60)", "The AWS article's simulator", "66cb169", SIMULATOR, || article(Jitter::None)),
    ),
    also(
        &["aws-blog.full"],
        preset("aws-blog.full(1,60)", "The AWS article's simulator", "66cb169", SIMULATOR, || article(closed(Jitter::Full))),
    ),
    also(
        &["aws-blog.equal"],
        preset("aws-blog.equal(1,60)", "The AWS article's simulator", "66cb169", SIMULATOR, || article(closed(Jitter::Equal))),
    ),
    also(
        &["aws-blog.decorrelated"],
        preset("aws-blog.decorrelated(1,60)", "The AWS article's simulator", "66cb169", SIMULATOR, || {
            exponential(1.0, 2.0).cap(60.0, Order::CapLast).jitter(Jitter::Decorrelated { bound: false, rising: false })
        }),
    ),
    also(&["classic"], preset("classic.2^n+rand()", "The classic article", "–", "–", || exponential(2.0, 2.0).widened(1.0, 0.0))),
];

/// The same row, told with both ends.
fn closed(jitter: Jitter) -> Jitter {
    Jitter::Row(crate::policy::Row { closed: true, ..jitter.row() })
}
