//! `graphile_worker`, the port of Graphile Worker to Rust, with its local queue and its batched completion.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use graphile_worker::{IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext, WorkerOptions};
use serde::{Deserialize, Serialize};
use sqlx::{Connection, PgConnection};

use crate::accounts::{done, ready};

static RUN: AtomicU64 = AtomicU64::new(0);

#[derive(Serialize, Deserialize)]
struct Noop {
    id: u64,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        RUN.fetch_add(1, Ordering::Relaxed);
        Ok::<(), String>(())
    }
}

pub async fn drain(jobs: u64, at_once: usize, queue: usize, delay_ms: u64) -> anyhow::Result<()> {
    let url = std::env::var("DATABASE_URL")?;
    let worker = WorkerOptions::default()
        .database_url(&url)
        .max_pg_conn(at_once.min(24) as u32 + 4)
        .schema("graphile_worker")
        .concurrency(at_once)
        .poll_interval(Duration::from_millis(50))
        .local_queue(LocalQueueConfig::default().with_size(queue))
        .complete_job_batch_delay(Duration::from_millis(delay_ms))
        .define_job::<Noop>()
        .init()
        .await?;
    let utils = worker.create_utils();
    let spec = |id| RawJobSpec { identifier: "noop".into(), payload: serde_json::json!({ "id": id }), spec: JobSpec::default() };
    let all: Vec<RawJobSpec> = (0..jobs).map(spec).collect();
    for chunk in all.chunks(10_000) {
        utils.add_raw_jobs(chunk).await?;
    }
    let mut connection = PgConnection::connect(&url).await?;
    sqlx::raw_sql("ANALYZE").execute(&mut connection).await?;
    sqlx::raw_sql("CHECKPOINT").execute(&mut connection).await?;
    ready().await?;
    let worker = Arc::new(worker);
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { worker.run().await }
    });
    while RUN.load(Ordering::Relaxed) < jobs {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Its shutdown acknowledges what is still to be.
    worker.request_shutdown();
    let _ = running.await?;
    done().await
}
