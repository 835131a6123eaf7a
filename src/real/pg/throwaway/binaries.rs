//! A folder with server binaries, shown to work.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::user::{self, User};

/// The oldest major version that simq supports.
pub(super) const OLDEST: u32 = 14;

/// Server binaries: a folder in which both `postgres` and `initdb` start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    /// The folder of `postgres` and `initdb`.
    pub bin: PathBuf,
    /// The major version, 14 or higher.
    pub major: u32,
    /// What `postgres -V` prints, without the program's name.
    pub version: String,
    /// How they were found.
    pub source: Source,
}

/// How server binaries were found, in the order of looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Named by `SIMQ_PG_BIN`.
    Given,
    /// On this machine: on `PATH`, by `pg_config`, or in a place where distributions put them.
    System,
    /// Fetched by an earlier start.
    Cache,
    /// Fetched just now.
    Fetched,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Given => "SIMQ_PG_BIN",
            Source::System => "this system",
            Source::Cache => "simq's cache",
            Source::Fetched => "fetched just now",
        })
    }
}

/// Tries the binaries in `bin`, as the user that will run them. Distributions put links to `postgres` on `PATH`; the
/// folder that counts is the one the link leads to.
///
/// # Errors
/// A sentence that says what is wrong with the folder.
pub(super) fn probe(bin: &Path, source: Source, user: Option<&User>) -> Result<Binaries, String> {
    let postgres = fs::canonicalize(bin.join("postgres")).map_err(|error| say(bin, "postgres", &error))?;
    let bin = postgres.parent().unwrap_or(bin).to_owned();
    let version = print_version(&bin, "postgres", user)?;
    print_version(&bin, "initdb", user)?;
    let major = major(&version).ok_or_else(|| format!("{} has the unreadable version {version:?}", bin.display()))?;
    if major < OLDEST {
        return Err(format!("{} holds PostgreSQL {version}, too old: simq needs {OLDEST} or newer", bin.display()));
    }
    Ok(Binaries { bin, major, version, source })
}

/// A child with an environment that cannot mislead Postgres, run by the server's user, with nothing on stdin.
pub(super) fn command(program: impl AsRef<OsStr>, home: &Path, user: Option<&User>) -> Command {
    let mut command = Command::new(program);
    let misleads = |name: &OsStr| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"PG") || name.starts_with(b"LC_") || name.starts_with(b"LANG")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| misleads(name)) {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").env("HOME", home).current_dir(home).stdin(Stdio::null());
    user::drop_to(&mut command, user);
    command
}

fn print_version(bin: &Path, program: &str, user: Option<&User>) -> Result<String, String> {
    let output =
        command(bin.join(program), Path::new("/"), user).arg("-V").output().map_err(|error| say(bin, program, &error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let why = stderr.lines().next().map_or_else(|| output.status.to_string(), str::to_owned);
        return Err(format!("{program} in {} does not start: {why}", bin.display()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().split_once("(PostgreSQL) ").map_or(text.trim(), |(_, version)| version).to_owned())
}

fn say(bin: &Path, program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{} has no {program}", bin.display()),
        io::ErrorKind::PermissionDenied => {
            format!("{program} in {} cannot be run by the server's user ({error})", bin.display())
        }
        _ => format!("{program} in {} does not start: {error}", bin.display()),
    }
}

/// "15.18 (Debian 15.18-0+deb12u1)" is 15, "19beta1" is 19.
fn major(version: &str) -> Option<u32> {
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_major_version() {
        assert_eq!(major("15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(major("19beta1"), Some(19));
        assert_eq!(major("devel"), None);
    }

    #[test]
    fn says_what_a_folder_lacks() {
        let empty = tempfile::tempdir().expect("a temporary directory");
        let error = probe(empty.path(), Source::System, None).expect_err("nothing is there");
        assert!(error.ends_with("has no postgres"), "{error}");
    }
}
