//! News of new jobs: a subscription that rings the bell.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};

use super::Error;
use super::drive::Shared;
use super::pg::Schema;

/// Between two tries to subscribe again.
const PAUSE: Duration = Duration::from_millis(100);

/// Subscribes to news of new jobs, before the first is put in.
pub(super) async fn listen(schema: &Schema) -> Result<PgListener, Error> {
    let pool = PgPoolOptions::new().max_connections(1).connect_with(schema.options().clone()).await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen(schema.name()).await?;
    Ok(listener)
}

/// Rings the bell at each notification. One that is lost with a connection costs no more than the workers' longest sleep: when the
/// subscription is there again, the bell rings for what may have been missed.
pub(super) async fn pass_on(mut listener: PgListener, schema: Schema, shared: Arc<Shared>) {
    loop {
        while let Ok(Some(_)) = listener.try_recv().await {
            shared.bell.remind(shared.clock.now(), Duration::ZERO);
        }
        listener = again(&schema, &shared).await;
        shared.bell.remind(shared.clock.now(), Duration::ZERO);
    }
}

/// A new subscription, as soon as the database takes one.
async fn again(schema: &Schema, shared: &Shared) -> PgListener {
    loop {
        match listen(schema).await {
            Ok(listener) => return listener,
            Err(_) => shared.clock.sleep_until(shared.clock.now() + PAUSE).await,
        }
    }
}
