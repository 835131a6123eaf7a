//! What simq and the guard tell each other: one line of JSON in, lines of JSON out.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::user::User;
use crate::scenario::chaos::Restart;

/// What the guard is to start; the first line of its stdin, whose end of file tells it to stop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    /// The folder of `postgres` and `initdb`.
    pub(super) bin: PathBuf,
    pub(super) major: u32,
    /// Where to make the server's directory, best place first.
    pub(super) parents: Vec<PathBuf>,
    /// The template data directory, there or not yet; `None` if there is no cache.
    pub(super) template: Option<PathBuf>,
    pub(super) user: Option<User>,
    pub(super) durable: bool,
}

/// What the guard may be asked for, once the server is up: further lines of its stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wish {
    /// Stop the server like this, and start it again on the same data.
    Restart(Restart),
}

/// What the guard says on its stdout.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Report {
    Ready(Ready),
    /// The server did not come up.
    Failed(String),
    /// The server was up, and went away without being asked to.
    Ended(String),
}

/// The server is up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) pid: u32,
    pub(super) directory: PathBuf,
    pub(super) template: Template,
    pub(super) prepare: Duration,
    pub(super) start: Duration,
}

/// Where the data directory came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Template {
    /// A copy of the cached template.
    Hit,
    /// initdb made it, and the cache keeps a copy for the next start.
    Made,
    /// initdb made it, and there is no cache to keep a copy in.
    Off,
}

/// Reads the specification; `None` if simq was gone before it sent one.
pub(super) fn read_spec(input: &mut impl BufRead) -> io::Result<Option<Spec>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 || !line.ends_with('\n') {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).map_err(io::Error::other)
}

/// Tells simq. If simq is gone nobody listens, and the end of stdin says so soon enough.
pub(super) fn say(report: &Report) {
    let line = serde_json::to_string(report).expect("strings, numbers and paths that came as JSON serialize");
    let mut out = io::stdout().lock();
    let _gone = writeln!(out, "{line}").and_then(|()| out.flush());
}
