//! Why there is no throwaway server.

use std::io;
use std::path::PathBuf;

/// What kept a throwaway server from starting, or ended it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `SIMQ_PG_BIN` names a folder that cannot be used.
    #[error("SIMQ_PG_BIN ({}) cannot be used: {why}", path.display())]
    Given {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No server binaries anywhere, and none could be fetched.
    #[error("no PostgreSQL server (14 or newer) found{}; {hint}, or name a database with --database-url", tried_text(tried))]
    NoServer {
        /// What was looked at and why it did not serve; empty if nothing was there.
        tried: Vec<String>,
        /// The install command for this platform, as half a sentence.
        hint: String,
    },
    /// Postgres refuses to run as root, and there is nobody else to run it as.
    #[error("PostgreSQL does not run as root, and this system has no user `postgres` or `nobody` to run it as; add one")]
    NoUser,
    /// We are root, but in a container that does not let root become anybody else.
    #[error("PostgreSQL does not run as root, and this one may not become user {user}, so run simq as an ordinary user")]
    NoSwitch {
        /// Whom it would have run as.
        user: String,
        /// What the system said.
        source: io::Error,
    },
    /// sqlx reads `PGOPTIONS` from the environment and has no way to be told not to.
    #[error("PGOPTIONS is set and would change the throwaway server's sessions: unset it")]
    PgOptions,
    /// The guard process did not start.
    #[error("cannot start the guard process ({})", exe.display())]
    Guard {
        /// The executable that was tried.
        exe: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something about a file or folder.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// initdb or postgres did not start, or failed on the way up.
    #[error("the throwaway PostgreSQL did not start: {0}")]
    Start(String),
    /// The server was up, and went away without being asked to.
    #[error("the throwaway PostgreSQL ended by itself: {0}")]
    Ended(String),
    /// The server is up, but does not take connections.
    #[error("the throwaway PostgreSQL takes no connections")]
    Connect(#[source] sqlx::Error),
}

impl Error {
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { action, path, source }
    }
}

fn tried_text(tried: &[String]) -> String {
    if tried.is_empty() { String::new() } else { format!(" ({})", tried.join("; ")) }
}

/// An error and its causes on one line, for a message that crosses a pipe.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
