//! Proxies, clusters and brokers' clients.

use super::build::*;
use super::{Group, Preset};
use crate::policy::{BudgetRule, Ends, First, Jitter, Limit, Order, Policy, RetryAfter, Row};

const fn preset(
    id: &'static str,
    system: &'static str,
    version: &'static str,
    source: &'static str,
    policy: fn() -> Policy,
) -> Preset {
    Preset { id, aliases: &[], group: Group::Infrastructure, system, version, source, policy }
}

const fn also(aliases: &'static [&'static str], preset: Preset) -> Preset {
    Preset { aliases, ..preset }
}

fn envoy() -> Policy {
    exponential(0.025, 2.0).cap(0.25, Order::CapFirst).times(0.0, 1.0).grain(MS, Ends::Down).only(&["503", "refused", "reset"])
}

/// Finagle's own jitters, base 1 s, cap 60 s.
fn finagle(jitter: Jitter) -> Policy {
    exponential(1.0, 2.0).first(First::Exact).cap(60.0, Order::CapLast).jitter(jitter)
}

pub(super) const PRESETS: &[Preset] = &[
    preset("envoy", "Envoy", "v1.39", "source/common/router/retry_state_impl.cc", || {
        envoy().retries(1).budget(BudgetRule::Concurrent { most: 3, share: 0.0 })
    }),
    preset(
        "envoy.retry-budget",
        "Envoy with a retry budget and reset headers",
        "v1.39",
        "source/common/upstream/resource_manager_impl.h",
        || {
            envoy()
                .retries(1)
                .heeds(RetryAfter::Spread { share: 0.5, longest: secs(300.0) }, &[])
                .budget(BudgetRule::Concurrent { most: 3, share: 0.2 })
        },
    ),
    preset("istio", "Istio", "1.31-alpha", "pilot/pkg/networking/core/route/retry/retry.go", || envoy().retries(2)),
    also(
        &["finagle"],
        preset("finagle.requeue(default)", "Finagle", "24.5.0", "service/RequeueFilter.scala", || {
            at_once().only(&["refused"]).fifth()
        }),
    ),
    also(
        &["finagle.decorrelated"],
        preset("finagle.decorrelatedJittered(1s,60s)", "Finagle", "24.5.0", "finagle-core/Backoff.scala", || {
            finagle(Jitter::Decorrelated { bound: true, rising: true }).fifth()
        }),
    ),
    also(
        &["finagle.equal"],
        preset("finagle.equalJittered(1s,60s)", "Finagle", "24.5.0", "finagle-core/Backoff.scala", || {
            finagle(Jitter::Row(Row::of(0.5, 1.0))).fifth()
        }),
    ),
    also(
        &["finagle.exponential"],
        preset("finagle.exponentialJittered(1s,60s)", "Finagle", "24.5.0", "finagle-core/Backoff.scala", || {
            finagle(Jitter::Compounding).fifth()
        }),
    ),
    also(
        &["linkerd2-proxy", "linkerd2"],
        preset("linkerd", "linkerd2-proxy (100 ms, 10 s, 0.5)", "29637b64", "linkerd/exp-backoff/src/lib.rs", || {
            exponential(0.1, 2.0)
                .cap(10.0, Order::CapLast)
                .jitter(Jitter::Split { share: 0.5, second: SECOND, cloned: false })
                .heeds(RetryAfter::Between { low: secs(0.1), high: secs(10.0) }, &[])
                .fifth()
        }),
    ),
    also(
        &["kubelet", "k8s.CrashLoopBackOff", "crashloopbackoff", "k8s.kubelet"],
        preset("kubelet.CrashLoopBackOff", "kubelet", "2026", "pkg/kubelet/kubelet.go", || {
            exponential(5.0, 2.0).first(First::Free).cap(300.0, Order::CapFirst).retries(ENDLESS)
        }),
    ),
    preset(
        "k8s.workqueue.item",
        "client-go work queue, one item alone",
        "32ce75a7",
        "util/workqueue/default_rate_limiters.go",
        || exponential(0.005, 2.0).cap(1000.0, Order::CapFirst).retries(ENDLESS),
    ),
    also(
        &["k8s.workqueue"],
        preset(
            "k8s.workqueue.controller",
            "client-go work queue with its shared bucket",
            "32ce75a7",
            "util/workqueue/default_rate_limiters.go",
            || {
                exponential(0.005, 2.0)
                    .cap(1000.0, Order::CapFirst)
                    .retries(ENDLESS)
                    .budget(BudgetRule::Bucket { rate: 10.0, burst: 100 })
            },
        ),
    ),
    also(
        &["client-go.reflector", "kubernetes.reflector", "reflector"],
        preset("k8s.reflector", "client-go reflector", "32ce75a7", "tools/cache/reflector.go", || {
            exponential(0.8, 2.0).cap(30.0, Order::CapFirst).times(1.0, 2.0).retries(ENDLESS)
        }),
    ),
    also(
        &["client-go.rest"],
        preset("k8s.rest", "client-go REST client", "32ce75a7", "rest/with_retry.go", || {
            at_once().but(&["4xx", "5xx", "timeout", "refused", "reset"]).heeds(RetryAfter::Replace, &[]).heeds_any().retries(10)
        }),
    ),
    preset("k8s.retry.DefaultRetry", "client-go conflict retry", "eed236ce", "util/retry/util.go", || {
        constant(0.01).times(1.0, 1.1).only(&["409"]).retries(4)
    }),
    preset("k8s.retry.DefaultBackoff", "client-go conflict backoff", "eed236ce", "util/retry/util.go", || {
        let policy = exponential(0.01, 5.0).times(1.0, 1.1).only(&["409"]).retries(3);
        Policy { limit: Limit { at_cap: true, ..Limit::default() }, ..policy }
    }),
    also(
        &["kafka", "kafka.java"],
        preset(
            "kafka.java.reconnect",
            "Kafka's Java client, connections",
            "trunk 1eb76443",
            "clients/common/utils/ExponentialBackoff.java",
            || kafka(0.05).retries(ENDLESS),
        ),
    ),
    preset(
        "kafka.java.retry",
        "Kafka's Java client, requests",
        "trunk 1eb76443",
        "clients/common/utils/ExponentialBackoff.java",
        || kafka(0.1).within(120.0, false),
    ),
    also(
        &["librdkafka"],
        preset("librdkafka.retry", "librdkafka, requests", "v2.15.0", "src/rdkafka_broker.c", || {
            exponential(0.1, 2.0).times_closed(0.8, 1.2).cap(1.0, Order::CapLast).share_grain(0.01).within(300.0, false)
        }),
    ),
    preset("librdkafka.reconnect", "librdkafka, connections", "v2.15.0", "src/rdkafka_broker.c", || {
        exponential(0.1, 2.0).times_closed(0.75, 1.5).cap(10.0, Order::CapBoth).grain(MS, Ends::Both).retries(ENDLESS)
    }),
];

fn kafka(base: f64) -> Policy {
    exponential(base, 2.0).times(0.8, 1.2).cap(1.0, Order::CapBoth).grain(MS, Ends::Down)
}
