//! Job queues that store their jobs: the n⁴ family and its cousins.

use super::build::*;
use super::{Group, Preset};
use crate::policy::{Backoff, Ends, Jitter, Order, Row, Tail};

const fn preset(
    id: &'static str,
    system: &'static str,
    version: &'static str,
    source: &'static str,
    policy: fn() -> crate::policy::Policy,
) -> Preset {
    Preset { id, aliases: &[], group: Group::Queues, system, version, source, policy }
}

const fn also(aliases: &'static [&'static str], preset: Preset) -> Preset {
    Preset { aliases, ..preset }
}

pub(super) const PRESETS: &[Preset] = &[
    preset("sidekiq", "Sidekiq", "v8.1.7", "lib/sidekiq/job_retry.rb", || {
        power(4.0, 1).plus(15.0).widened(0.0, 10.0).grain(SECOND, Ends::Down).retries(25).promoted(5.0)
    }),
    preset("faktory", "Faktory", "v1.9.4", "manager/retry.go", || {
        power(4.0, 1).plus(15.0).widened(0.0, 30.0).growing_grain(SECOND).retries(25).promoted(5.0)
    }),
    preset("asynq", "asynq", "v0.26.0", "server.go", || {
        power(4.0, 1).plus(15.0).widened(0.0, 30.0).growing_grain(SECOND).retries(25).promoted(5.0)
    }),
    preset("hangfire", "Hangfire", "1.8.24", "src/Hangfire.Core/AutomaticRetryAttribute.cs", || {
        power(4.0, 1).plus(15.0).widened(0.0, 30.0).growing_grain(SECOND).retries(10).promoted(15.0)
    }),
    preset("delayed_job", "delayed_job", "v4.2.0", "lib/delayed/backend/base.rb", || {
        power(4.0, 0).plus(5.0).retries(24).promoted(5.0)
    }),
    preset("que", "Que", "v2.4.1", "lib/que/job.rb", || power(4.0, 0).plus(3.0).retries(15).promoted(5.0)),
    also(
        &["resque-retry"],
        preset("resque-retry.default", "Resque-retry", "v1.8.1", "lib/resque/plugins/retry.rb", || at_once().retries(1)),
    ),
    preset("resque-retry.exponential", "Resque-retry", "v1.8.1", "lib/resque/plugins/exponential_backoff.rb", || {
        list(&[0, 60, 600, 3600, 10_800, 21_600], Tail::Last).grain(SECOND, Ends::Down).retries(6).promoted(5.0)
    }),
    also(
        &["activejob", "activejob.wait-3s"],
        preset("activejob.wait-3s(j=.15)", "ActiveJob", "8.1", "activejob/lib/active_job/exceptions.rb", || {
            let mut policy = constant(3.0).times(1.0, 1.15).retries(4);
            policy.counter.by_failure = true;
            policy
        }),
    ),
    preset("activejob.polynomially_longer(j=0)", "ActiveJob", "8.1", "activejob/lib/active_job/exceptions.rb", || {
        let mut policy = power(4.0, 0).pad(2.0).retries(4);
        policy.counter.by_failure = true;
        policy
    }),
    also(
        &["activejob.polynomially_longer"],
        preset("activejob.polynomially_longer(j=.15)", "ActiveJob", "8.1", "activejob/lib/active_job/exceptions.rb", || {
            let mut policy = power(4.0, 0).times(1.0, 1.15).pad(2.0).retries(4);
            policy.counter.by_failure = true;
            policy
        }),
    ),
    also(
        &["good-job", "good_job.retry-on-unhandled"],
        preset("good_job", "GoodJob (retry on unhandled error)", "v4.19.2", "lib/good_job/configuration.rb", || {
            at_once().retries(ENDLESS)
        }),
    ),
    also(
        &["solid-queue"],
        preset("solid_queue", "Solid Queue", "v1.5.0", "lib/solid_queue/configuration.rb", || at_once().retries(0)),
    ),
    preset("oban", "Oban", "v2.23.0", "lib/oban/worker.ex", || {
        let mut policy =
            exponential(2.0, 2.0).plus(15.0).times(1.0, 1.1).grain(SECOND, Ends::Down).until(20).retries(19).promoted(1.0);
        policy.counter.rescale = Some(20);
        policy
    }),
    preset("river", "River", "v0.43.0", "internal/retrypolicy/default.go", || {
        power(4.0, 0).times(0.9, 1.1).cap(i64::MAX as f64 / 1e9, Order::CapFirst).at_cap(1.0, 1.0, false).retries(24)
    }),
    preset("graphile-worker", "graphile-worker", "v0.17.3", "src/sql/failJobs.ts", || {
        exponential(std::f64::consts::E, std::f64::consts::E).until(10).retries(24).promoted(2.0)
    }),
    also(
        &["graphile-worker-rs"],
        preset(
            "graphile_worker_rs",
            "graphile_worker_rs",
            "6f31597",
            "crates/graphile-worker-queries/src/fail_job/batch.rs",
            || exponential(std::f64::consts::E, std::f64::consts::E).until(10).retries(24).promoted(2.0),
        ),
    ),
    also(&["pg-boss"], preset("pg-boss.default", "pg-boss", "55ee32f", "src/manager.ts", || at_once().retries(2).promoted(2.0))),
    preset("pg-boss.retryBackoff", "pg-boss", "55ee32f", "src/plans.ts", || {
        exponential(1.0, 2.0).until(16).times(1.0, 2.0).retries(2).promoted(2.0)
    }),
    also(&["bullmq.default"], preset("bullmq", "BullMQ", "v6.2.0", "src/classes/job.ts", || at_once().retries(0))),
    also(
        &["bullmq.exponential"],
        preset("bullmq.exponential(1000ms)", "BullMQ", "v6.2.0", "src/classes/backoffs.ts", || exponential(1.0, 2.0)),
    ),
    preset("bullmq.exponential(1000ms,jitter=.5)", "BullMQ", "v6.2.0", "src/classes/backoffs.ts", || {
        exponential(1.0, 2.0).times(0.5, 1.0).grain(MS, Ends::Down)
    }),
    also(
        &["bee-queue", "bee-queue.exponential"],
        preset("bee-queue.exponential(1000ms)", "bee-queue", "cabb582", "lib/backoff.js", || exponential(1.0, 2.0)),
    ),
    preset("agenda.exponential", "Agenda", "f9437cc", "packages/agenda/src/utils/backoff.ts", || {
        exponential(1.0, 2.0).retries(3).promoted(5.0)
    }),
    preset("agenda.standard", "Agenda", "f9437cc", "packages/agenda/src/utils/backoff.ts", || {
        exponential(1.0, 2.0).times(0.9, 1.1).grain(MS, Ends::Both).retries(5).promoted(5.0)
    }),
    preset("agenda.aggressive", "Agenda", "f9437cc", "packages/agenda/src/utils/backoff.ts", || {
        exponential(0.1, 2.0).retries(3).promoted(5.0)
    }),
    preset("sqlxmq", "sqlxmq", "0.6.0", "migrations/20220208120856_fix_concurrent_poll.up.sql", || {
        exponential(1.0, 2.0).retries(4).since_claim()
    }),
    also(
        &["apalis"],
        preset("apalis.RetryPolicy", "apalis", "v1.0.0-rc.7", "apalis/src/layers/retry/mod.rs", || at_once().retries(5)),
    ),
    preset("apalis.postgres", "apalis-postgres", "33f8f3b", "src/lib.rs", || at_once().retries(24)),
    preset("underway", "underway", "v0.2.0", "src/task/retry_policy.rs", || {
        exponential(1.0, 2.0).cap(60.0, Order::CapFirst).times(0.5, 1.0).grain(MS, Ends::Both).retries(4)
    }),
    preset("fang", "fang", "0.11.0-rc0", "fang/src/asynk/async_runnable.rs", || exponential(1.0, 2.0).retries(20)),
    preset("awa", "awa", "v0.6.1", "awa-model/migrations/", || {
        exponential(2.0, 2.0).times(1.0, 1.25).cap(86_400.0, Order::CapLast).retries(24)
    }),
    also(
        &["pgqueuer"],
        preset("pgqueuer.DatabaseRetry", "pgqueuer", "v1.3.2", "pgqueuer/core/executors.py", || {
            exponential(1.0, 2.0).cap(300.0, Order::CapFirst).retries(5)
        }),
    ),
    also(
        &["celery", "celery.default"],
        preset("celery.retry()", "Celery", "v5.6.2", "celery/app/task.py", || constant(180.0).retries(3)),
    ),
    also(
        &["celery.retry_backoff", "celery.autoretry"],
        preset("celery.retry_backoff=True", "Celery", "v5.6.2", "celery/app/autoretry.py", || {
            exponential(1.0, 2.0).cap(600.0, Order::CapFirst).times_closed(0.0, 1.0).grain(SECOND, Ends::Both).retries(3)
        }),
    ),
    also(&["rq", "rq.retry"], preset("rq.Retry(max)", "RQ", "v2.10", "rq/job.py", at_once)),
    also(
        &["rq.list"],
        preset("rq.Retry(max=5,interval=[10,30,60])", "RQ", "v2.10", "rq/job.py", || list(&[10, 30, 60], Tail::First).retries(5)),
    ),
    also(
        &["dramatiq.default"],
        preset("dramatiq", "Dramatiq", "v2.2.0", "dramatiq/middleware/retries.py", || {
            exponential(15.0, 2.0)
                .until(33)
                .jitter(Jitter::Row(Row { closed: true, ..Row::of(1.0, 2.0) }))
                .cap(604_800.0, Order::CapFirst)
                .at_cap(0.5, 1.0, true)
                .grain(MS, Ends::Cut)
                .retries(20)
        }),
    ),
    also(&["huey"], preset("huey.retry_delay=1,backoff=2", "Huey", "3.3.0", "huey/api.py", || exponential(1.0, 2.0))),
    also(
        &["procrastinate"],
        preset("procrastinate.retry=True", "Procrastinate", "3.9.0", "procrastinate/retry.py", || {
            at_once().retries(ENDLESS).promoted(5.0)
        }),
    ),
    preset("procrastinate.exponential_wait=2", "Procrastinate", "3.9.0", "procrastinate/retry.py", || {
        any(Backoff::Sum { parts: vec![Backoff::Exponential { base: secs(2.0), factor: 2.0 }] }).promoted(5.0)
    }),
    also(
        &["laravel"],
        preset("laravel.default", "Laravel", "v13.26.1", "src/Illuminate/Queue/Worker.php", || {
            at_once().retries(0).promoted(3.0)
        }),
    ),
];
