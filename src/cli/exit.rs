//! Exit codes, documented and stable.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// A fault in simq itself.
    Internal = 1,
    /// The command line or the scenario is wrong.
    Usage = 2,
    /// Something that was to hold does not.
    Gate = 3,
    /// The measurement is invalid (with `--strict`).
    Invalid = 4,
    /// The environment does not allow it: no database, no port, no space.
    Environment = 5,
    /// The audit of a run found that a job was lost, held twice or left in limbo.
    Audit = 6,
    /// Ended by Ctrl-C or SIGTERM.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error that has an exit code; wrap the cause with [`anyhow::Error::context`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Code(pub(super) Exit);

/// Says nothing: it stands in a chain of messages, and is not one.
impl fmt::Display for Code {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for Code {}

/// Prints an error on stderr, and says how to exit. A closed pipe is no error.
pub(super) fn report(error: &anyhow::Error) -> Exit {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed) {
        return Exit::Done;
    }
    let exit = error.downcast_ref::<Code>().map_or(Exit::Internal, |code| code.0);
    super::say::say(&format!("error: {}", message(error)));
    exit
}

/// The causes, outermost first, each said once.
fn message(error: &anyhow::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if !cause.is_empty() && !said.last().is_some_and(|last| last.contains(&cause)) {
            said.push(cause);
        }
    }
    said.join(": ")
}
