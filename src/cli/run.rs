//! stub
use super::{Exit, args};

pub(super) fn main(_args: args::Run) -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}
