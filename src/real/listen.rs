//! News of new jobs: a subscription that rings the bell.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};

use super::Error;
use super::drive::Shared;
use super::pg::Schema;

/// Subscribes to news of new jobs, before the first is put in.
pub(super) async fn listen(schema: &Schema) -> Result<PgListener, Error> {
    let pool = PgPoolOptions::new().max_connections(1).connect_with(schema.options().clone()).await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen(schema.name()).await?;
    Ok(listener)
}

/// Rings the bell at each notification. One that is lost with a connection costs no more than the workers' longest sleep.
pub(super) async fn pass_on(mut listener: PgListener, shared: Arc<Shared>) {
    while listener.recv().await.is_ok() {
        shared.bell.remind(shared.clock.now(), Duration::ZERO);
    }
}
