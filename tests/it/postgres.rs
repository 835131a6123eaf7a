//! `simq postgres`: every way to end it leaves no process and no directory, and nothing around it can mislead it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::str::FromStr;

use rustix::process::Signal;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

use crate::cluster::fast_place;
use crate::processes::{self, signal, until};

const SIMQ: &str = env!("CARGO_BIN_EXE_simq");

/// A folder in which the servers of one test live, so that it can tell its own from others.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("simq-it-").tempdir_in(fast_place()).unwrap();
        // As root, the server runs as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Place(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// `simq postgres` with the templates that all tests share.
    fn simq(&self) -> Command {
        let mut command = Command::new(SIMQ);
        command.arg("postgres").env("SIMQ_PG_DIR", self.path());
        command.env("SIMQ_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        command.env_remove("DATABASE_URL");
        command
    }

    fn around(&self, words: &[&str]) -> Output {
        self.simq().arg("--").args(words).output().unwrap()
    }

    /// The servers' directories.
    fn directories(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path()).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("simq-pg-")).collect()
    }

    fn is_clean(&self) -> bool {
        self.directories().is_empty() && processes::naming(&self.path().to_string_lossy()).is_empty()
    }

    fn assert_clean(&self) {
        assert!(self.is_clean(), "left: {:?} {:?}", self.directories(), processes::naming(&self.path().to_string_lossy()));
    }

    fn becomes_clean(&self) {
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
        let ours = |process: &processes::Process| process.parent == self.pid() && process.command.contains("postgres-guard");
        processes::all().into_iter().find(ours).expect("there is a guard").pid
    }

    /// The exit code, and what was said on stderr.
    fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

fn server_pid(place: &Place) -> u32 {
    let directory = place.directories().pop().expect("the server has a directory");
    let file = fs::read_to_string(directory.join("data/postmaster.pid")).unwrap();
    file.lines().next().unwrap().parse().unwrap()
}

async fn ask(url: &str, sql: &str) -> String {
    let mut connection = PgConnection::connect_with(&PgConnectOptions::from_str(url).unwrap()).await.unwrap();
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await.unwrap()
}

#[test]
fn a_command_gets_the_url_and_its_exit_code_is_passed_on() {
    let place = Place::new();
    let output = place.around(&["sh", "-c", "echo $DATABASE_URL; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("postgres://simq@%2F"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ready in"), "the start-up figures");
    place.assert_clean();
}

#[test]
fn a_command_that_succeeds_leaves_nothing() {
    let place = Place::new();
    assert_eq!(place.around(&["true"]).status.code(), Some(0));
    place.assert_clean();
}

#[test]
fn a_command_that_does_not_exist_is_a_usage_error_and_leaves_nothing() {
    let place = Place::new();
    let output = place.around(&["/no/such/command"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run /no/such/command"));
    place.becomes_clean();
}

#[test]
fn ctrl_c_and_sigterm_stop_the_server_and_are_success() {
    for stop in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let simq = Running::start(&mut place.simq());
        assert!(!place.is_clean(), "the test sees the server");
        signal(simq.pid(), stop);
        let (code, stderr) = simq.end();
        assert_eq!(code, Some(0), "{stderr}");
        place.assert_clean();
    }
}

#[test]
fn sigterm_is_passed_on_to_the_command() {
    let place = Place::new();
    let simq = place.simq().args(["--", "sleep", "600"]).stderr(Stdio::piped()).spawn().unwrap();
    let is_sleep = |process: &processes::Process| process.parent == simq.id() && process.command.starts_with("sleep");
    until("the command", || processes::all().into_iter().find(is_sleep));
    signal(simq.id(), Signal::TERM);
    assert_eq!(simq.wait_with_output().unwrap().status.code(), Some(128 + 15));
    place.assert_clean();
}

#[test]
fn sigkill_of_simq_takes_the_server_with_it() {
    let place = Place::new();
    let simq = Running::start(&mut place.simq());
    signal(simq.pid(), Signal::KILL);
    // Also reads stderr to its end: the guard must not hold it open.
    assert_eq!(simq.end().0, None);
    place.becomes_clean();
}

#[test]
fn sigkill_of_simq_during_initdb_leaves_nothing() {
    let place = Place::new();
    let mut command = place.simq();
    let mut simq = command.env("SIMQ_CACHE_DIR", place.folder("cache")).stderr(Stdio::null()).spawn().unwrap();
    let in_place = |process: &processes::Process| process.command.contains("initdb");
    until("initdb", || processes::naming(&place.path().to_string_lossy()).into_iter().find(in_place));
    signal(simq.id(), Signal::KILL);
    simq.wait().unwrap();
    place.becomes_clean();
}

#[test]
fn a_server_that_dies_is_an_environment_error_that_says_so() {
    let place = Place::new();
    let simq = Running::start(&mut place.simq());
    signal(server_pid(&place), Signal::KILL);
    let (code, stderr) = simq.end();
    assert_eq!(code, Some(5));
    assert!(stderr.contains("the throwaway PostgreSQL ended by itself: signal: 9"), "{stderr}");
    place.becomes_clean();
}

#[test]
fn a_server_that_dies_takes_the_command_with_it() {
    let place = Place::new();
    let simq = place.simq().args(["--", "sleep", "600"]).stderr(Stdio::piped()).spawn().unwrap();
    let is_sleep = |process: &processes::Process| process.parent == simq.id() && process.command.starts_with("sleep");
    let command = until("the command", || processes::all().into_iter().find(is_sleep));
    signal(server_pid(&place), Signal::KILL);
    assert_eq!(simq.wait_with_output().unwrap().status.code(), Some(5));
    assert!(processes::all().iter().all(|process| process.pid != command.pid));
    place.becomes_clean();
}

#[test]
fn sigterm_of_the_guard_stops_the_server() {
    let place = Place::new();
    let simq = Running::start(&mut place.simq());
    signal(simq.guard(), Signal::TERM);
    let (code, stderr) = simq.end();
    assert_eq!(code, Some(5));
    assert!(stderr.contains("its guard got SIGTERM"), "{stderr}");
    place.becomes_clean();
}

#[test]
fn the_guard_is_deaf_to_what_terminals_send() {
    let place = Place::new();
    let simq = Running::start(&mut place.simq());
    let guard = simq.guard();
    signal(guard, Signal::INT);
    signal(guard, Signal::HUP);
    signal(simq.pid(), Signal::TERM);
    assert_eq!(simq.end().0, Some(0), "simq asked first, so it found the guard alive");
    place.assert_clean();
}

#[test]
fn simq_cleans_up_after_a_killed_guard() {
    let place = Place::new();
    let simq = Running::start(&mut place.simq());
    signal(simq.guard(), Signal::KILL);
    let (code, stderr) = simq.end();
    assert_eq!(code, Some(5));
    assert!(stderr.contains("its guard process was killed"), "{stderr}");
    place.assert_clean();
}

#[test]
fn the_next_start_removes_what_a_killed_simq_and_a_killed_guard_left() {
    let place = Place::new();
    let simq = Running::start(&mut place.simq());
    let (guard, orphan) = (simq.guard(), server_pid(&place));
    // Stopped, so that it cannot clean up itself.
    signal(simq.pid(), Signal::STOP);
    signal(guard, Signal::KILL);
    signal(simq.pid(), Signal::KILL);
    simq.end();
    until("the guard's end", || processes::all().iter().all(|process| process.pid != guard).then_some(()));
    assert!(processes::all().iter().any(|process| process.pid == orphan), "the server is an orphan");
    assert_eq!(place.around(&["true"]).status.code(), Some(0));
    place.becomes_clean();
}

#[test]
fn two_servers_do_not_disturb_each_other() {
    let place = Place::new();
    let first = Running::start(&mut place.simq());
    let second = Running::start(&mut place.simq());
    assert_ne!(first.url, second.url);
    signal(first.pid(), Signal::KILL);
    first.end();
    until("the first to go", || (place.directories().len() == 1).then_some(()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(ask(&second.url, "SELECT 'alive'")), "alive");
    signal(second.pid(), Signal::TERM);
    assert_eq!(second.end().0, Some(0));
    place.assert_clean();
}

#[tokio::test]
async fn commits_outlive_the_server_and_with_durable_the_system_too() {
    for (words, fsync) in [(&[][..], "off"), (&["--durable"], "on")] {
        let place = Place::new();
        let simq = Running::start(place.simq().args(words));
        assert_eq!(ask(&simq.url, "SHOW fsync").await, fsync);
        assert_eq!(ask(&simq.url, "SHOW full_page_writes").await, fsync);
        assert_eq!(ask(&simq.url, "SHOW synchronous_commit").await, "on");
        assert_eq!(ask(&simq.url, "SHOW listen_addresses").await, "");
        assert_eq!(ask(&simq.url, "SHOW server_encoding").await, "UTF8");
        let mode = fs::metadata(&place.directories()[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        signal(simq.pid(), Signal::TERM);
        simq.end();
    }
}

#[test]
fn a_hostile_environment_does_no_harm() {
    let place = Place::new();
    let mut simq = place.simq();
    // A cache of its own, so that initdb meets the environment too.
    simq.env("SIMQ_CACHE_DIR", place.folder("cache"));
    for (name, value) in [
        ("PGHOST", "/nowhere"),
        ("PGHOSTADDR", "192.0.2.1"),
        ("PGPORT", "1"),
        ("PGUSER", "nobody"),
        ("PGPASSWORD", "wrong"),
        ("PGDATABASE", "none"),
        ("PGSSLMODE", "verify-full"),
        ("PGSSLROOTCERT", "/nowhere"),
        ("PGOPTIONS", "-c no_such_setting=1"),
        ("PGDATA", "/nowhere"),
        ("PGTZ", "Nowhere/Atall"),
        ("LC_ALL", "xx_XX.nonsense"),
        ("LANG", "xx_XX.nonsense"),
    ] {
        simq.env(name, value);
    }
    let output = simq.args(["--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    place.assert_clean();
}

#[test]
fn a_spoilt_template_is_made_anew() {
    let place = Place::new();
    let cache = place.folder("cache");
    let run = || place.simq().env("SIMQ_CACHE_DIR", &cache).args(["--", "true"]).output().unwrap();
    assert!(String::from_utf8_lossy(&run().stderr).contains("template kept"));
    assert!(String::from_utf8_lossy(&run().stderr).contains("template copied"));
    let template = fs::read_dir(cache.join("templates")).unwrap().next().unwrap().unwrap().path();
    fs::write(template.join("global/pg_control"), "").unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("template kept"));
    place.assert_clean();
}

#[test]
fn without_a_server_one_error_names_the_way_out() {
    let place = Place::new();
    let mut simq = place.simq();
    simq.env("PATH", "/nonexistent").env("SIMQ_PG_SYSTEM", "0").env("SIMQ_CACHE_DIR", place.folder("cache"));
    let output = simq.env_remove("SIMQ_PG_BIN").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("no PostgreSQL server (14 or newer) found"), "{stderr}");
    assert!(stderr.contains("install one with") && stderr.contains("--database-url"), "{stderr}");
    place.assert_clean();
}

#[test]
fn binaries_that_are_too_old_are_refused_by_version() {
    let place = Place::new();
    let bin = place.folder("bin");
    for program in ["postgres", "initdb"] {
        let path = bin.join(program);
        fs::write(&path, format!("#!/bin/sh\necho '{program} (PostgreSQL) 13.4'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = place.simq().env("SIMQ_PG_BIN", &bin).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr.contains("PostgreSQL 13.4, too old: simq needs 14 or newer"), "{stderr}");
    place.assert_clean();
}

#[test]
fn a_server_that_does_not_start_shows_its_log() {
    let place = Place::new();
    let bin = place.folder("bin");
    for program in ["postgres", "initdb"] {
        let path = bin.join(program);
        let script = "#!/bin/sh\n[ \"$1\" = -V ] && echo 'x (PostgreSQL) 17.1' && exit\necho 'the moon is wrong' >&2\nexit 1\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = place.simq().env("SIMQ_PG_BIN", &bin).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr.contains("did not start: initdb ended with exit status: 1: the moon is wrong"), "{stderr}");
    place.becomes_clean();
}

/// Root in the suite stands for an ordinary user's machine too: a copy of simq, run by a user without a home.
#[test]
fn an_ordinary_user_without_a_home_gets_a_server() {
    if !rustix::process::geteuid().is_root() {
        // Then every other test is this one.
        return;
    }
    const NOBODY: u32 = 65_534;
    let place = Place::new();
    let simq = place.path().join("simq");
    fs::copy(SIMQ, &simq).unwrap();
    fs::set_permissions(&simq, fs::Permissions::from_mode(0o755)).unwrap();
    let own = place.folder("own");
    chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new(&simq);
    command.args(["postgres", "--", "true"]).env("SIMQ_PG_DIR", &own).current_dir("/").uid(NOBODY).gid(NOBODY);
    for name in ["HOME", "XDG_CACHE_HOME", "SIMQ_CACHE_DIR", "DATABASE_URL"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("initdb in"), "there is no cache: {stderr}");
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    place.assert_clean();
}
