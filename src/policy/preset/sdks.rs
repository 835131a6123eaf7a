//! Clients of one service, and HTTP clients.

use super::build::*;
use super::{Group, Preset};
use crate::policy::{
    Backoff, Breaker, BudgetRule, Ends, First, Jitter, Kind, Order, Policy, Rate, RateRule, RetryAfter, Scope, Trip,
};

const fn preset(
    id: &'static str,
    system: &'static str,
    version: &'static str,
    source: &'static str,
    policy: fn() -> Policy,
) -> Preset {
    Preset { id, aliases: &[], group: Group::Sdks, system, version, source, policy }
}

const fn also(aliases: &'static [&'static str], preset: Preset) -> Preset {
    Preset { aliases, ..preset }
}

const LOST: [&str; 3] = ["timeout", "refused", "reset"];

/// What AWS's standard mode retries: not a plain 429.
fn aws_codes(policy: Policy) -> Policy {
    policy.only(&["timeout", "refused", "reset", "500", "502", "503", "504"])
}

fn aws_2026(base: f64) -> Policy {
    let spread = |base: f64| exponential(base, 2.0).cap(20.0, Order::CapFirst).times(0.0, 1.0);
    let policy = aws_codes(spread(base))
        .throttled(&["429"])
        .retries(2)
        .quota(14.0, 14.0, 5.0)
        .heeds(RetryAfter::Within { above: secs(5.0) }, &[]);
    Policy { by_failure: vec![(Kind::Throttled, spread(1.0))], ..policy }
}

fn stripe(policy: Policy) -> Policy {
    policy.only(&["timeout", "refused", "reset", "409", "5xx"]).retries(2)
}

pub(super) const PRESETS: &[Preset] = &[
    also(
        &["botocore"],
        preset("botocore.legacy", "botocore, legacy mode", "1.44.8", "botocore/retryhandler.py", || {
            exponential(1.0, 2.0)
                .times(0.0, 1.0)
                .only(&["timeout", "refused", "reset", "429", "500", "502", "503", "504", "509"])
                .retries(4)
        }),
    ),
    preset("botocore.legacy.dynamodb", "botocore, legacy mode, DynamoDB", "1.44.8", "botocore/data/_retry.json", || {
        exponential(0.05, 2.0).only(&["timeout", "refused", "reset", "429", "500", "502", "503", "504", "509"]).retries(9)
    }),
    also(
        &["aws.standard", "aws"],
        preset("aws.standard-2.0", "AWS SDKs, standard mode", "smithy-rs 56ee88c5", "botocore/retries/standard.py", || {
            aws_codes(exponential(1.0, 2.0).cap(20.0, Order::CapFirst).times(0.0, 1.0))
                .retries(2)
                .quota(5.0, 10.0, 5.0)
                .heeds(RetryAfter::Between { low: secs(0.0), high: secs(20.0) }, &[])
        }),
    ),
    also(
        &["aws.2026"],
        preset(
            "aws.2026.transient",
            "AWS SDKs, standard mode of 2026",
            "botocore 1.44.8",
            "botocore/retries/standard.py",
            || aws_2026(0.05),
        ),
    ),
    preset(
        "aws.2026.throttle",
        "AWS SDKs, standard mode of 2026, throttled",
        "botocore 1.44.8",
        "botocore/retries/standard.py",
        || aws_2026(1.0),
    ),
    preset(
        "aws.2026.dynamodb",
        "AWS SDKs, standard mode of 2026, DynamoDB",
        "botocore 1.44.8",
        "botocore/retries/standard.py",
        || aws_2026(0.025).retries(3),
    ),
    preset("aws.adaptive", "AWS SDKs, adaptive mode", "botocore 1.44.8", "botocore/retries/adaptive.py", || {
        let policy = aws_codes(exponential(1.0, 2.0).cap(20.0, Order::CapFirst).times(0.0, 1.0))
            .throttled(&["429"])
            .retries(2)
            .quota(5.0, 10.0, 5.0);
        Policy { rate: Some(Rate { rule: RateRule::Adaptive { second: SECOND }, scope: Scope::Process }), ..policy }
    }),
    also(
        &["aws.go-v2"],
        preset("aws.go-v2.legacy", "AWS SDK for Go v2", "2026", "aws/retry/jitter_backoff.go", || {
            aws_codes(exponential(2.0, 2.0).times(0.0, 1.0))
                .cap(20.0, Order::CapFirst)
                .at_cap(1.0, 1.0, false)
                .retries(2)
                .quota(5.0, 10.0, 5.0)
        }),
    ),
    also(
        &["aws.js"],
        preset(
            "aws.js.transient",
            "AWS SDK for JavaScript v3",
            "6815d3e9",
            "packages/core/src/submodules/retry/util-retry/",
            || {
                let spread = |base: f64| exponential(base, 2.0).cap(20.0, Order::CapFirst).times(0.0, 1.0).grain(MS, Ends::Down);
                let policy = aws_codes(spread(0.1))
                    .throttled(&["429"])
                    .retries(2)
                    .quota(5.0, 10.0, 5.0)
                    .heeds(RetryAfter::Within { above: secs(5.0) }, &[]);
                Policy { by_failure: vec![(Kind::Throttled, spread(0.5))], ..policy }
            },
        ),
    ),
    also(
        &["google-api-core"],
        preset("google.api-core", "google-api-core", "2.44.0", "google/api_core/retry/retry_base.py", || {
            exponential(1.0, 2.0)
                .cap(60.0, Order::CapFirst)
                .times_closed(0.0, 1.0)
                .only(&["429", "500", "503", "refused", "reset"])
                .within(120.0, true)
        }),
    ),
    also(
        &["gax"],
        preset("gax-go", "gax-go", "5a1e0eb", "v2/call_option.go", || {
            exponential(1.0, 2.0)
                .cap(30.0, Order::CapFirst)
                .times(0.0, 1.0)
                .pad(1e-9)
                .only(&["503", "refused", "reset"])
                .retries(ENDLESS)
        }),
    ),
    also(
        &["azure-core"],
        preset("azure-core.python", "azure-core for Python", "1.41.0", "azure/core/pipeline/policies/_retry.py", || {
            exponential(0.8, 2.0)
                .first(First::Free)
                .cap(120.0, Order::CapFirst)
                .only(&["timeout", "refused", "reset", "408", "429", "5xx"])
                .but(&["501", "505"])
                .heeds(RetryAfter::Replace, &[])
                .heeds_any()
                .retries(3)
        }),
    ),
    also(
        &["azcore-go", "azcore.go"],
        preset("azcore", "azcore for Go", "2026", "sdk/azcore/runtime/policy_retry.go", || {
            exponential(1.6, 2.0)
                .minus(0.8)
                .times(0.8, 1.3)
                .cap(60.0, Order::CapLast)
                .only(&["timeout", "refused", "reset", "408", "429", "500", "502", "503", "504"])
                .heeds(RetryAfter::GiveUpAbove { longest: secs(60.0), at_least: false }, &[])
                .retries(3)
        }),
    ),
    preset("stripe-python", "Stripe for Python", "v15.3.1", "stripe/_http_client.py", || {
        stripe(exponential(0.5, 2.0).cap(5.0, Order::CapFirst).times_closed(0.5, 1.0).floor(0.5))
    }),
    preset("stripe-node", "Stripe for Node", "v22.5.0", "src/RequestSender.ts", || {
        stripe(exponential(0.25, 2.0).cap(5.0, Order::CapFirst).times(0.5, 1.0).floor(0.5))
    }),
    preset("stripe-go", "Stripe for Go", "v86.2.0", "stripe.go", || {
        let square = Backoff::Polynomial { base: secs(0.5), offset: 1, power: 2.0 };
        stripe(any(square).plus(0.5).cap(5.0, Order::CapFirst).times(0.75, 1.0).floor(0.5))
    }),
    also(
        &["grpc"],
        preset("grpc.A6-example", "gRPC, the example of its proposal", "A6, 2026", "A6-client-retries.md", || {
            grpc().times(0.8, 1.2)
        }),
    ),
    preset("grpc.pre-2024", "gRPC before 2024", "A6, 2023", "A6-client-retries.md", || grpc().times(0.0, 1.0)),
    also(
        &["grpc.connection"],
        preset("grpc.connection(go)", "gRPC connections in Go", "4793ad04", "internal/backoff/backoff.go", || {
            exponential(1.0, 1.6).first(First::Exact).cap(120.0, Order::CapFirst).times(0.8, 1.2).retries(ENDLESS)
        }),
    ),
    also(
        &["polly", "polly.v8"],
        preset("polly.v8.default", "Polly", "8.7.0", "src/Polly.Core/Retry/RetryHelper.cs", || constant(2.0).retries(3)),
    ),
    preset("polly.v8.exponential+jitter(2s)", "Polly", "8.7.0", "src/Polly.Core/Retry/RetryHelper.cs", || {
        exponential(2.0, 2.0).jitter(Jitter::Timeline).retries(3)
    }),
    preset("polly.v8.constant+jitter(2s)", "Polly", "8.7.0", "src/Polly.Core/Retry/RetryHelper.cs", || {
        constant(2.0).times(0.75, 1.25).retries(3)
    }),
    also(
        &["polly.v8.linear", "polly.v8.linear(2s)"],
        preset("polly.v8.linear+jitter(2s)", "Polly", "8.7.0", "src/Polly.Core/Retry/RetryHelper.cs", || {
            linear(2.0, 2.0).times(0.75, 1.25).retries(3)
        }),
    ),
    also(
        &["dotnet.http", ".net-http-resilience", "dotnet-http-resilience"],
        preset(
            "dotnet.http-resilience",
            ".NET HTTP resilience",
            "5862342c",
            "src/Libraries/Microsoft.Extensions.Http.Resilience/Polly/HttpRetryStrategyOptions.cs",
            || {
                let policy = exponential(2.0, 2.0)
                    .jitter(Jitter::Timeline)
                    .only(&["timeout", "refused", "reset", "408", "429", "5xx"])
                    .heeds(RetryAfter::Replace, &[])
                    .retries(3)
                    .within(30.0, false);
                let trip = Trip::Ratio { share: 0.1, window: secs(30.0), least: 100 };
                Policy {
                    breaker: Some(Breaker { trip, open: secs(5.0), jitter: 0.0, probes: 1, on: vec![], scope: Scope::Process }),
                    ..policy
                }
            },
        ),
    ),
    also(
        &["polly-contrib", "polly-contrib.decorrelated"],
        preset(
            "polly-contrib.AwsDecorrelated(1,60)",
            "Polly.Contrib.WaitAndRetry",
            "1.1.1",
            "src/Polly.Contrib.WaitAndRetry/Backoff.AwsDecorrelatedJitter.cs",
            || exponential(1.0, 3.0).cap(60.0, Order::CapLast).jitter(Jitter::Decorrelated { bound: true, rising: false }),
        ),
    ),
    also(
        &["go-retryablehttp"],
        preset("go-retryablehttp.DefaultBackoff", "go-retryablehttp", "v0.7.8", "client.go", || {
            retryable(exponential(1.0, 2.0).cap(30.0, Order::CapFirst))
        }),
    ),
    preset("go-retryablehttp.LinearJitter(1s,30s)", "go-retryablehttp", "v0.7.8", "client.go", || {
        retryable(linear(1.0, 1.0).times(1.0, 30.0))
    }),
    also(&["urllib3"], preset("urllib3.default", "urllib3", "2.7.0", "src/urllib3/util/retry.py", || urllib3(at_once()))),
    preset("urllib3.backoff_factor=1", "urllib3", "2.7.0", "src/urllib3/util/retry.py", || {
        urllib3(exponential(1.0, 2.0).first(First::Free).cap(120.0, Order::CapLast))
    }),
    also(
        &["reqwest-retry"],
        preset("reqwest-retry.default", "reqwest-retry", "614b947", "reqwest-retry/src/middleware.rs", || {
            exponential(1.0, 2.0)
                .cap(1800.0, Order::CapFirst)
                .times(0.0, 1.0)
                .only(&["timeout", "refused", "reset", "408", "429", "5xx"])
        }),
    ),
    also(
        &["faraday-retry"],
        preset("faraday-retry.default", "faraday-retry", "v2.4.0", "lib/faraday/retry/middleware.rb", || {
            at_once().only(&LOST).heeds(RetryAfter::AtLeast, &[]).retries(2)
        }),
    ),
];

fn grpc() -> Policy {
    exponential(0.1, 2.0)
        .cap(1.0, Order::CapFirst)
        .only(&["503", "refused", "reset"])
        .heeds(RetryAfter::Restart, &[])
        .retries(3)
        .budget(BudgetRule::Tokens {
            max: 10.0,
            cost: 1.0,
            timeout_cost: 1.0,
            throttled_cost: 1.0,
            refill: 0.1,
            refund: false,
            threshold: 5.0,
            on_failure: true,
        })
}

fn retryable(policy: Policy) -> Policy {
    policy.only(&["timeout", "refused", "reset", "429", "5xx"]).but(&["501"]).heeds(RetryAfter::Replace, &[429, 503]).retries(4)
}

/// Statuses only if listed: a hint on one of three makes it worth a retry.
fn urllib3(policy: Policy) -> Policy {
    let longest = RetryAfter::Between { low: secs(0.0), high: secs(21_600.0) };
    policy.only(&LOST).heeds(longest, &[413, 429, 503]).heeds_any().retries(10)
}
