//! The server's private directory: made, locked, and deleted again. What is left of one whose guard was killed is
//! for [`super::reap`].
//!
//! ```text
//! simq-pg-XXXXXXXX/      0700, the server's user
//! ├─ guard.lock          locked by the guard for as long as it lives
//! ├─ server.log          what initdb and postgres said
//! ├─ .s.PGSQL.5432       the socket
//! └─ data/
//! ```

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use super::Error;
use super::settings::PORT;
use super::user::{self, User};

/// How the names of these directories begin.
pub(super) const PREFIX: &str = "simq-pg-";
/// The lock's file name.
pub(super) const LOCK: &str = "guard.lock";

/// A socket's path may have 103 bytes on macOS, 107 on Linux.
const SOCKET_PATH_MAX: usize = 103;
const TAIL_BYTES: usize = 2_000;
const DELETE_TRIES: u32 = 250;

/// A locked directory, deleted when dropped.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    _lock: File,
}

impl Directory {
    /// Makes one in the first of `parents` that will do: short enough for a socket, open to the server's user.
    pub(super) fn create(parents: &[PathBuf], user: Option<&User>) -> Result<Directory, Error> {
        let mut failed = None;
        for parent in parents.iter().filter(|parent| user.is_none_or(|user| user.may_enter(parent))) {
            let path = parent.join(fresh_name());
            if !socket_fits(&path) {
                continue;
            }
            match DirBuilder::new().mode(0o700).create(&path).map_err(Error::file("make", &path)) {
                Ok(()) => return Directory::lock(path, user),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| {
            let places: Vec<_> = parents.iter().map(|parent| parent.display().to_string()).collect();
            let places = places.join(" and ");
            Error::Start(format!(
                "the path of {places} is too long for a socket, or closed to the server's user; set SIMQ_PG_DIR"
            ))
        }))
    }

    /// The lock gets its name when it is already held, so that nobody ever sees it free while its guard lives.
    fn lock(path: PathBuf, user: Option<&User>) -> Result<Directory, Error> {
        let draft = path.join("guard.lock.new");
        let lock = File::create(&draft).map_err(Error::file("make", &draft))?;
        let directory = Directory { path, _lock: lock };
        directory._lock.lock().map_err(Error::file("lock", &draft))?;
        fs::rename(&draft, directory.path.join(LOCK)).map_err(Error::file("rename", &draft))?;
        File::create(directory.log()).map_err(Error::file("make", directory.log()))?;
        user::give(&directory.path, user)?;
        Ok(directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// The log, open at its end.
    pub(super) fn open_log(&self) -> Result<File, Error> {
        File::options().append(true).open(self.log()).map_err(Error::file("open", self.log()))
    }

    /// The log's last lines, on one line.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let tail = String::from_utf8_lossy(&log[log.len().saturating_sub(TAIL_BYTES)..]).into_owned();
        let lines: Vec<_> = tail.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(8)..].join(" | ")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        delete(&self.path);
    }
}

/// Deletes a directory, with patience: the last processes of a killed server may still write for a moment.
pub(super) fn delete(path: &Path) {
    for _ in 0..DELETE_TRIES {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => thread::sleep(Duration::from_millis(20)),
            // Gone, or not ours to delete: nothing more to be done.
            Ok(()) | Err(_) => return,
        }
    }
}

fn socket_fits(directory: &Path) -> bool {
    directory.as_os_str().len() + format!("/.s.PGSQL.{PORT}").len() <= SOCKET_PATH_MAX
}

/// Differs from process to process and from moment to moment; making the directory fails if it is taken all the same.
fn fresh_name() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{PREFIX}{:x}-{:x}", std::process::id(), now.as_micros() & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_next_place_if_the_first_is_too_deep_for_a_socket() {
        let root = tempfile::tempdir_in("/tmp").expect("a temporary directory");
        let deep = root.path().join("d".repeat(100));
        fs::create_dir(&deep).expect("a deep directory");
        let made = Directory::create(&[deep, root.path().into()], None).expect("the second place will do");
        assert_eq!(made.path().parent(), Some(root.path()));
    }

    #[test]
    fn is_locked_while_it_lives_and_gone_after() {
        let root = tempfile::tempdir_in("/tmp").expect("a temporary directory");
        let made = Directory::create(&[root.path().into()], None).expect("a directory");
        let other = File::open(made.path().join(LOCK)).expect("the lock is there");
        assert!(other.try_lock().is_err());
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists());
    }
}
