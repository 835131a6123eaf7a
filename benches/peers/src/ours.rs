//! simq's own engine: leases, fencing, every job's end recorded.

use std::time::Duration;

use anyhow::ensure;
use simq::call::Outcome;
use simq::policy::Policy;
use simq::queue::ClaimMode;
use simq::real::pg::{Schema, parse_url};
use simq::real::{Crew, Handler};
use simq::rng::Seed;
use simq::worker::{Settings, Wait};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::accounts::{done, ready};

pub async fn drain(jobs: u64, count: u32, batch: u32) -> anyhow::Result<()> {
    let schema = Schema::create(&parse_url(&std::env::var("DATABASE_URL")?)?, "simq_peers", "simq peers").await?;
    let mut connection = PgConnection::connect_with(schema.options()).await?;
    let fill = format!(
        "INSERT INTO ready (id, rank, type, payload, max_retries)
         SELECT id, 0, 'noop', '{{\"id\":' || id || '}}', 5 FROM generate_series(1, {jobs}) AS id"
    );
    sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut connection).await?;
    sqlx::raw_sql("ANALYZE").execute(&mut connection).await?;
    sqlx::raw_sql("CHECKPOINT").execute(&mut connection).await?;
    let workers = Settings {
        count,
        slots: batch,
        connections: count,
        claim: ClaimMode::Lease,
        batch,
        lease: Duration::from_secs(30),
        wait: Wait::Due { at_most: Duration::from_millis(200) },
    };
    let crew = Crew { workers, policy: Policy::default(), seed: Seed(1), handler: Handler::Inline(|_| Outcome::Ok) };
    ready().await?;
    let drained = simq::real::drain(&schema, crew, jobs).await?;
    ensure!(drained.tally.completed == jobs, "{} of {jobs} jobs were completed", drained.tally.completed);
    done().await
}
