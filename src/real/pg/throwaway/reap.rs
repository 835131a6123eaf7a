//! Removes what a killed guard left behind: a directory whose lock is free, and the server that still runs in it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

use super::directory::{LOCK, PREFIX, delete};
use super::user::User;

/// A directory without a lock is one that is being made, unless it is older than this.
const MAKING: Duration = Duration::from_secs(600);
/// How long a server has to quit before it is killed, in steps of [`STEP`].
const PATIENCE: u32 = 300;
const STEP: Duration = Duration::from_millis(20);

/// Removes every stale directory of ours in `parents`. What cannot be removed is left for another time.
pub(super) fn stale(parents: &[PathBuf], user: Option<&User>) {
    let entries = parents.iter().filter_map(|parent| fs::read_dir(parent).ok()).flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for path in named.map(|entry| entry.path()).filter(|path| is_ours(path, user)) {
        if let Some(_lock) = Abandoned::check(&path) {
            end_processes(&path);
            delete(&path);
        }
    }
}

fn is_ours(path: &Path, user: Option<&User>) -> bool {
    let owner = |uid| uid == rustix::process::geteuid().as_raw() || user.is_some_and(|user| user.uid == uid);
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && owner(meta.uid()))
}

/// Proof that nobody guards a directory; keeps other reapers off for as long as it is held.
struct Abandoned {
    _lock: Option<File>,
}

impl Abandoned {
    fn check(path: &Path) -> Option<Abandoned> {
        match File::open(path.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok().then_some(Abandoned { _lock: Some(lock) }),
            Err(_) => {
                let made = fs::metadata(path).and_then(|meta| meta.modified()).ok()?;
                let age = SystemTime::now().duration_since(made).ok()?;
                (age > MAKING).then_some(Abandoned { _lock: None })
            }
        }
    }
}

/// Ends what still runs in `path`: asks, then insists.
fn end_processes(path: &Path) {
    signal_all(path, Signal::QUIT);
    for _ in 0..PATIENCE {
        if processes_in(path).is_empty() {
            return;
        }
        thread::sleep(STEP);
    }
    signal_all(path, Signal::KILL);
}

fn signal_all(path: &Path, signal: Signal) {
    for pid in processes_in(path) {
        let _gone = kill_process(pid, signal);
    }
}

/// The server's processes in `path`: by their working directory, or where there is no /proc by the server's pid file.
fn processes_in(path: &Path) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc/self").and_then(|_| fs::read_dir("/proc")) else {
        return postmaster(path).into_iter().collect();
    };
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let works_here = |pid: &Pid| {
        let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        // Not a shell that somebody left standing there.
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let serves = ["postgres", "postmaster", "initdb"].contains(&name.trim_end());
        serves && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&real))
    };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Pid::from_raw);
    pids.filter(works_here).collect()
}

/// A pid may have been given to another process since, so its command line has to name the directory.
fn postmaster(path: &Path) -> Option<Pid> {
    let file = fs::read_to_string(path.join("data/postmaster.pid")).ok()?;
    let pid = Pid::from_raw(file.lines().next()?.trim().parse().ok()?)?;
    let ps = Command::new("ps").args(["-o", "command=", "-p", &pid.as_raw_nonzero().to_string()]).output().ok()?;
    let name = path.file_name()?.to_string_lossy();
    String::from_utf8_lossy(&ps.stdout).contains(&*name).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir_in("/tmp").expect("a temporary directory");
        let path = root.path().join(format!("{PREFIX}test"));
        fs::create_dir(&path).expect("a directory");
        (root, path)
    }

    #[test]
    fn removes_a_directory_whose_lock_is_free() {
        let (root, path) = place();
        File::create(path.join(LOCK)).expect("a lock");
        stale(&[root.path().into()], None);
        assert!(!path.exists());
    }

    #[test]
    fn leaves_a_guarded_directory_alone() {
        let (root, path) = place();
        let lock = File::create(path.join(LOCK)).expect("a lock");
        lock.lock().expect("nobody else has it");
        stale(&[root.path().into()], None);
        assert!(path.exists());
    }

    #[test]
    fn leaves_a_directory_in_the_making_and_strangers_alone() {
        let (root, path) = place();
        let other = root.path().join("simq-other");
        fs::create_dir(&other).expect("a directory");
        stale(&[root.path().into()], None);
        assert!(path.exists() && other.exists());
    }
}
