//! TLS to a server that demands it: what the URL says of it holds for every connection of a run.
//!
//! The server is made here, since a throwaway one has no port. Without an `openssl` to make certificates with, there is nothing to test.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use simq::real::End;
use simq::real::pg::{self, throwaway};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Executor};

use crate::cluster;
use crate::play::{HEALTHY, eventually, jobs, plan, scenario};

/// A server on a port of 127.0.0.1 that takes connections with TLS only.
struct Server {
    child: Child,
    home: tempfile::TempDir,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Makes an authority, and a certificate of its for 127.0.0.1; false without openssl.
fn certify(home: &Path) -> bool {
    let run = |args: &[&str]| {
        let done = Command::new("openssl").args(args).current_dir(home).stdout(Stdio::null()).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success())
    };
    let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    let authority = ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=simq test authority"];
    let server = ["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=127.0.0.1"];
    let names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
    run(&[&new[..], &authority].concat()) && run(&[&new[..], &server, &names].concat())
}

/// Whom the servers of this suite run as: root may not.
fn user_of(process: u32) -> Option<(u32, u32)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let id = |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok();
    Some((id("Uid:")?, id("Gid:")?))
}

fn give(path: &Path, (user, group): (u32, u32)) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path(), (user, group)));
    }
    chown(path, Some(user), Some(group)).unwrap();
}

async fn start() -> Option<Server> {
    let home = tempfile::tempdir_in(cluster::fast_place()).unwrap();
    if !certify(home.path()) {
        return None;
    }
    // Only to learn where the binaries are, and who runs them.
    let guard = Some(PathBuf::from(env!("CARGO_BIN_EXE_simq")));
    let options = throwaway::Options { guard, parent: Some(cluster::fast_place()), ..throwaway::Options::default() };
    let model = throwaway::Throwaway::start(options).await.unwrap();
    let (bin, user) = (model.startup().binaries.bin.clone(), user_of(model.server_pid())?);
    model.stop().await.unwrap();
    fs::set_permissions(home.path().join("server.key"), fs::Permissions::from_mode(0o600)).unwrap();
    give(home.path(), user);
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new(bin.join(program));
        command.args(args).current_dir(home.path()).env("LC_ALL", "C").stdout(Stdio::null()).stderr(Stdio::null());
        if rustix::process::getuid().is_root() {
            command.uid(user.0).gid(user.1);
        }
        command.spawn().unwrap()
    };
    let initdb = ["-D", "data", "-U", "simq", "-A", "trust", "--no-sync", "--locale=C", "--encoding=UTF8"];
    assert!(run("initdb", &initdb).wait().unwrap().success());
    fs::write(home.path().join("data/pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n").unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (number, files) = (port.to_string(), ["ssl_cert_file=../server.pem", "ssl_key_file=../server.key"]);
    let server = [
        "-D",
        "data",
        "-p",
        &number,
        "-h",
        "127.0.0.1",
        "-k",
        "",
        "-c",
        "ssl=on",
        "-c",
        files[0],
        "-c",
        files[1],
        "-c",
        "fsync=off",
    ];
    let child = run("postgres", &server);
    Some(Server { child, home, port })
}

impl Server {
    fn options(&self, parameters: &str) -> PgConnectOptions {
        pg::parse_url(&format!("postgres://simq@127.0.0.1:{}/postgres?{parameters}", self.port)).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_url_says_of_tls_holds_for_every_connection() {
    let Some(server) = start().await else {
        eprintln!("there is no openssl that can make certificates: not tested");
        return;
    };
    let required = server.options("sslmode=require");
    let mut watching = eventually("the server", async || PgConnection::connect_with(&required).await.ok()).await;
    let refused = pg::connect(&server.options("sslmode=disable")).await.unwrap_err().to_string();
    assert!(refused.contains("no encryption"), "{refused}");
    let stranger = pg::connect(&server.options("sslmode=verify-full")).await.unwrap_err().to_string();
    assert!(stranger.contains("certificate"), "nobody vouches for it: {stranger}");
    let authority = server.home.path().join("ca.pem");
    let verified = server.options(&format!("sslmode=verify-full&sslrootcert={}", authority.display()));
    let scenario = scenario(&(jobs(100, "arrival = 'constant'\nrate = '200/s'") + HEALTHY + "[policy.none]\nkind = 'none'\n"));
    let run = simq::real::run(plan(&scenario, 0, &verified, "simq_test"));
    let encrypted = eventually("the run's connections", async || {
        let statement = "SELECT FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'simq_test' AND ssl";
        let rows = watching.fetch_all(statement).await.unwrap();
        (rows.len() >= 4).then_some(rows.len())
    });
    let (outcome, encrypted) = tokio::join!(run, encrypted);
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.end, outcome.summary.counts.completed, &outcome.breaches[..]),
        (End::Finished, 100, &[][..]),
        "{encrypted}"
    );
    watching.close().await.unwrap();
}
