//! Brokers, workflow engines and message frameworks.

use super::build::*;
use super::{Group, Preset};
use crate::policy::{Backoff, Ends, Jitter, Order, Policy, Row};

const fn preset(
    id: &'static str,
    system: &'static str,
    version: &'static str,
    source: &'static str,
    policy: fn() -> Policy,
) -> Preset {
    Preset { id, aliases: &[], group: Group::Workflows, system, version, source, policy }
}

const fn also(aliases: &'static [&'static str], preset: Preset) -> Preset {
    Preset { aliases, ..preset }
}

pub(super) const PRESETS: &[Preset] = &[
    also(
        &["kombu"],
        preset("kombu.retry_over_time", "kombu", "v5.6.2", "kombu/utils/functional.py", || {
            linear(2.0, 2.0).cap(32.0, Order::CapFirst).retries(ENDLESS)
        }),
    ),
    also(
        &["temporal"],
        preset("temporal.activity", "Temporal server", "v1.29", "service/history/workflow/retry.go", || {
            exponential(1.0, 2.0).cap(100.0, Order::CapFirst).retries(ENDLESS)
        }),
    ),
    also(
        &["temporal.client", "temporal-client"],
        preset("temporal.go-client", "Temporal Go client", "83fc2bc6", "internal/common/retry/interceptor.go", || {
            exponential(0.2, 2.0).cap(10.0, Order::CapFirst).times(0.8, 1.0).within(60.0, false)
        }),
    ),
    also(
        &["temporal.server-internal"],
        preset("temporal.internal", "Temporal server, internal calls", "6805caea", "common/backoff/retrypolicy.go", || {
            exponential(1.0, 2.0).cap(10.0, Order::CapFirst).times(0.8, 1.0).within(60.0, false)
        }),
    ),
    preset("restate", "Restate (1 s, ×2)", "7e2cf5b", "src/retries.rs", || exponential(1.0, 2.0).retries(ENDLESS)),
    also(
        &["quartz", "quartz-net"],
        preset("quartz.net", "Quartz.NET, refire immediately", "d97e7822", "src/Quartz/Core/JobRunShell.cs", || {
            at_once().retries(ENDLESS)
        }),
    ),
    also(
        &["masstransit", "masstransit.exponential"],
        preset("masstransit.exponential(1s,60s,1s)", "MassTransit", "v8.5.8", "src/MassTransit/RetryPolicies/", || {
            exponential(1.0, 2.0).plus(1.0).cap(60.0, Order::CapFirst).jitter(Jitter::Frozen {
                low: 0.8,
                high: 1.2,
                row: Row::of(0.75, 1.25),
            })
        }),
    ),
    also(
        &["symfony-messenger", "symfony.messenger"],
        preset("symfony", "Symfony Messenger", "v7.1.5", "Retry/MultiplierRetryStrategy.php", || {
            exponential(1.0, 2.0).times_closed(0.9, 1.1).grain(MS, Ends::Both).retries(3)
        }),
    ),
    preset("machinery", "machinery", "v2.0.16", "v2/retry/fibonacci.go", || any(Backoff::Fibonacci { base: SECOND }).retries(0)),
    preset("watermill", "watermill, as cenkalti/backoff", "v1.5.1", "message/router/middleware/retry.go", || {
        exponential(0.5, 1.5).cap(60.0, Order::CapFirst).times_closed(0.5, 1.5)
    }),
    also(
        &["rabbitmq", "rabbitmq.quorum"],
        preset("rabbitmq.quorum(default)", "RabbitMQ quorum queue", "4.3-dev", "deps/rabbit/src/rabbit_fifo.erl", || {
            at_once().retries(20)
        }),
    ),
    also(
        &["rabbitmq.delayed-retry"],
        preset("rabbitmq.quorum(delayed,1s,60s)", "RabbitMQ quorum queue", "4.3-dev", "deps/rabbit/src/rabbit_fifo.erl", || {
            linear(1.0, 1.0).cap(60.0, Order::CapFirst).grain(MS, Ends::Down).retries(20)
        }),
    ),
    also(
        &["sqs"],
        preset("sqs.visibility-timeout", "Amazon SQS", "2026", "its documentation", || {
            constant(30.0).cap(43_200.0, Order::CapFirst).since_claim()
        }),
    ),
];
