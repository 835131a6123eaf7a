//! `simq mock`, the built binary, met from outside.

mod admin;
mod callers;
mod curl;
mod fuzz;
mod model;
mod wire;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::processes;
use wire::Answer;

/// A healthy service of two types of jobs, and room for what a test adds.
const HEALTHY: &str = r#"
name = "mock"
seed = 5
horizon = "1h"
[[jobs]]
type = "email"
count = 1
[[jobs]]
type = "report"
count = 1
[policy.none]
kind = "none"
[downstream]
servers = 50
latency = { kind = "constant", value = "1ms" }
"#;

/// A running `simq mock`.
struct Served {
    child: Child,
    out: BufReader<ChildStdout>,
    address: SocketAddr,
    admin: SocketAddr,
    home: tempfile::TempDir,
}

/// Serves the healthy service with `more` at its end.
fn serve(more: &str, args: &[&str]) -> Served {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("mock.toml"), format!("{HEALTHY}{more}")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_simq"))
        .args(["mock", "mock.toml"])
        .args(args)
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut address = |what: &str| {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix(what).unwrap_or_else(|| panic!("{line:?} does not begin with {what:?}"));
        address.parse::<SocketAddr>().unwrap()
    };
    let (address, admin) = (address("listening on http://"), address("admin on http://"));
    Served { child, out, address, admin, home }
}

impl Served {
    /// Asks the admin API; the answer must be JSON.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let answer = wire::ask(self.admin, method, path, &[], body);
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?}")))
    }

    fn state(&self) -> Value {
        self.ask("GET", "/state", "").1
    }

    /// Starts a fault by hand, lets `during` look at it, and ends it.
    fn with<T>(&self, fault: &Value, during: impl FnOnce() -> T) -> T {
        let (status, started) = self.ask("POST", "/faults", &fault.to_string());
        assert_eq!(status, 201, "{fault}: {started}");
        let seen = during();
        let id = started["id"].as_u64().unwrap();
        assert_eq!(self.ask("DELETE", &format!("/faults/{id}"), "").0, 200);
        seen
    }

    /// A plain request.
    fn get(&self) -> Answer {
        wire::ask(self.address, "GET", "/email", &[], "")
    }

    /// Waits until nobody is connected any more.
    fn until_alone(&self) {
        processes::until("all connections to be given back", || (self.state()["connections"] == json!(0)).then_some(()));
    }

    /// Tells it to stop, and reads its log.
    fn stop_and_read_log(mut self) -> String {
        self.end();
        fs::read_to_string(self.home.path().join("log.csv")).unwrap()
    }

    /// Tells it to stop; the rest of what it printed on stdout, and stderr.
    fn stop(mut self) -> (String, String) {
        self.end()
    }

    fn end(&mut self) -> (String, String) {
        processes::signal(self.child.id(), Signal::TERM);
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {err}");
        assert!(err.contains("stopped after ") && !err.contains("panicked"), "{err}");
        (out, err)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each failure that can be started by hand, by the name of its mode.
fn faults() -> Vec<Value> {
    vec![
        json!({ "mode": "unavailable", "retry_after": "7s" }),
        json!({ "mode": "hang" }),
        json!({ "mode": "reset" }),
        json!({ "mode": "slow-body", "takes": "1h" }),
        json!({ "mode": "truncated" }),
        json!({ "mode": "garbage" }),
        json!({ "mode": "maintenance" }),
        json!({ "mode": "brownout", "error_rate": 1 }),
        json!({ "mode": "rate-limit", "rate": "1/h", "limiter": "fixed-window", "per": "1h", "retry_after": "reset" }),
        json!({ "mode": "permanent", "code": 401 }),
        json!({ "mode": "refuse" }),
    ]
}

#[test]
fn it_says_where_it_listens_and_what_will_happen() {
    let more =
        "[[downstream.outage]]\nat = '20m'\nlasts = '5s'\nevery = '50s'\nmode = 'reset'\nprobability = 0.5\ntype = 'email'\n";
    let served = serve(more, &["--start", "on-first-request"]);
    assert!(served.address.ip().is_loopback() && served.admin.ip().is_loopback());
    assert_eq!(served.get().status, 200);
    let (out, err) = served.stop();
    assert_eq!(
        out,
        "the timeline starts with the first request (seed 5):\n  1. 20m to 20m 5s, every 50s: reset, 50 % of calls, of type email\n"
    );
    assert!(err.starts_with("stopped after 1 requests; answers left "), "{err}");
}

#[test]
fn wrong_words_and_taken_ports_are_clear_errors() {
    let served = serve("", &[]);
    let taken = served.address.to_string();
    let run = |args: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_simq")).arg("mock").args(args).current_dir(served.home.path()).output().unwrap();
        assert!(output.stdout.is_empty());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = run(&["mock.toml", "--listen", &taken]);
    assert_eq!(code, Some(5), "{message}");
    assert!(message.contains(&format!("could not serve on {taken}")), "{message}");
    let (code, message) = run(&["mock.toml", "--listen", "everywhere"]);
    assert_eq!(code, Some(2), "{message}");
    let (code, message) = run(&["nowhere.toml"]);
    assert_eq!((code, message.contains("nowhere.toml")), (Some(2), true), "{message}");
    let (code, message) = run(&["mock.toml", "--log", "nowhere/log.csv"]);
    assert_eq!((code, message.contains("nowhere/log.csv")), (Some(5), true), "{message}");
}
