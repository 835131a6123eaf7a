//! stub
use super::{Exit, args};

pub(super) fn main(_args: args::Postgres) -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}

pub(super) fn guard() -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}
