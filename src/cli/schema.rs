//! `simq schema`: the JSON schema of scenario files, for editors.

use std::io::{self, Write};

use super::Exit;
use crate::scenario;

pub(super) fn main() -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    out.write_all(scenario::schema().as_bytes())?;
    out.flush()?;
    Ok(Exit::Done)
}
