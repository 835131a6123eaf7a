//! `simq postgres`: a throwaway server that is gone when it should be, and works wherever it is started.

mod ends;
mod surroundings;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::cluster::fast_place;
use crate::processes::{self, until};

const SIMQ: &str = env!("CARGO_BIN_EXE_simq");

/// A folder in which the servers of one test live, so that it can tell its own from others.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("simq-it-").tempdir_in(fast_place()).unwrap();
        // As root, the server runs as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Place(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// `simq postgres`.
    fn simq(&self) -> Command {
        let mut command = self.command();
        command.arg("postgres");
        command
    }

    /// `simq`, with the templates that all tests share.
    pub fn command(&self) -> Command {
        let mut command = Command::new(SIMQ);
        command.env("SIMQ_PG_DIR", self.path());
        command.env("SIMQ_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        command.env_remove("DATABASE_URL");
        command
    }

    fn around(&self, words: &[&str]) -> Output {
        self.simq().arg("--").args(words).output().unwrap()
    }

    /// The servers' directories.
    pub fn directories(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("simq-pg-")).collect()
    }

    pub fn is_clean(&self) -> bool {
        self.directories().is_empty() && processes::naming(&self.path().to_string_lossy()).is_empty()
    }

    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "left: {:?} {:?}", self.directories(), processes::naming(&self.path().to_string_lossy()));
    }

    pub fn becomes_clean(&self) {
        until("the server and its directory to go", || self.is_clean().then_some(()));
    }
}

/// A running `simq postgres`.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        Running { child, url: url.trim().to_owned() }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn guard(&self) -> u32 {
        processes::child(self.pid(), "postgres-guard").expect("there is a guard").pid
    }

    /// The exit code, and what was said on stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

pub fn server_pid(place: &Place) -> u32 {
    let directory = place.directories().pop().expect("the server has a directory");
    let file = fs::read_to_string(directory.join("data/postmaster.pid")).unwrap();
    file.lines().next().unwrap().parse().unwrap()
}
