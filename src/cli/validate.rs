//! stub
use super::{Exit, args};

pub(super) fn main(_args: args::Validate) -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}
