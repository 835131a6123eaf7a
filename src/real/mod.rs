//! The real world: tokio, Postgres and HTTP.

pub mod pg;
