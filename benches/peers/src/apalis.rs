//! `apalis` on `apalis-postgres`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage};

use crate::accounts::{done, ready};

static RUN: AtomicU64 = AtomicU64::new(0);

async fn noop(_: u64) -> Result<(), BoxDynError> {
    RUN.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

pub async fn drain(jobs: u64, workers: u32, batch: usize) -> anyhow::Result<()> {
    let url = std::env::var("DATABASE_URL")?;
    let pool: PgPool = sqlx::postgres::PgPoolOptions::new().max_connections(2 * workers + 8).connect(&url).await?;
    PostgresStorage::setup(&pool).await?;
    let fill = "INSERT INTO apalis.jobs (id, job_type, job, status, attempts, max_attempts, run_at, priority)
                SELECT apalis.generate_ulid(), 'q', convert_to(g::text, 'utf8'), 'Pending', 0, 25, now(), 0
                FROM generate_series(1, $1) AS g";
    sqlx::query(fill).bind(jobs as i64).execute(&pool).await?;
    sqlx::raw_sql("ANALYZE").execute(&pool).await?;
    sqlx::raw_sql("CHECKPOINT").execute(&pool).await?;
    ready().await?;
    let config = || Config::default().queue("q").batch_size(batch).lock_tasks(true);
    let all = (0..workers).map(|number| {
        let backend = PostgresStorage::<u64>::new(&pool).with_config(config());
        let worker = WorkerBuilder::new(format!("w{number}")).backend(backend).build(noop);
        async move {
            let _ = worker.run().await;
        }
    });
    tokio::select! {
        _ = futures::future::join_all(all) => anyhow::bail!("its workers ended"),
        acknowledged = acknowledged(&pool, jobs) => acknowledged?,
    }
    done().await
}

async fn acknowledged(pool: &PgPool, jobs: u64) -> anyhow::Result<()> {
    while RUN.load(Ordering::Relaxed) < jobs {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    loop {
        let open: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT FROM apalis.jobs WHERE status <> 'Done')").fetch_one(pool).await?;
        if !open {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
