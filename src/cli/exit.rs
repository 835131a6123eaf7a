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
    /// The measurement is invalid (with `--strict`).
    Invalid = 4,
    /// The environment does not allow it: no database, no port, no space.
    Environment = 5,
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

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Exit::Environment => f.write_str("the environment does not allow it"),
            Exit::Usage => f.write_str("the input is wrong"),
            _ => f.write_str("simq failed"),
        }
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
    anstream::eprintln!("error: {}", message(error));
    exit
}

fn message(error: &anyhow::Error) -> String {
    let parts: Vec<String> = error.chain().filter(|cause| !cause.is::<Code>()).map(ToString::to_string).collect();
    if parts.is_empty() { error.to_string() } else { parts.join(": ") }
}
