//! Each failure as `curl` sees it, whose exit codes many scripts go by.

use std::process::Command;

use super::{Served, faults, serve};
use crate::processes;

/// The exit code of curl, and what it wrote: status and Retry-After, then the body.
fn curl(served: &Served, args: &[&str]) -> (i32, String) {
    let format = "%{stderr}%{http_code} %header{retry-after}";
    let url = format!("http://{}/email", served.address);
    let output = Command::new("curl").args(["--silent", "--write-out", format, &url]).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stderr) + "|" + &text(&output.stdout))
}

#[test]
fn curl_sees_each_failure_for_what_it_is() {
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no `curl` on this machine, so how it sees failures is not tested");
        return;
    }
    let served = serve("", &[]);
    let healthy = curl(&served, &[]);
    assert!(healthy.0 == 0 && healthy.1.starts_with("200") && healthy.1.ends_with("|{\"ok\":true}"), "{healthy:?}");
    assert_eq!(curl(&served, &["--data", "not=json"]).1.get(..3), Some("200"), "a form is none of our business");
    let json = ["--json", "{broken"];
    assert_eq!(curl(&served, &json).1.get(..3), Some("422"), "what says it is JSON must be");
    for fault in faults() {
        let mode = fault["mode"].as_str().unwrap().to_owned();
        let seen = served.with(&fault, || match &*mode {
            "refuse" => processes::until("curl to be refused", || Some(curl(&served, &[])).filter(|(code, _)| *code == 7)),
            // curl's own patience, as a user would set it: an hour would pass else.
            "hang" | "slow-body" => curl(&served, &["--max-time", "1"]),
            "rate-limit" => {
                curl(&served, &[]);
                curl(&served, &[])
            }
            _ => curl(&served, &[]),
        });
        let (code, begins) = match &*mode {
            "refuse" => (7, "000"),
            "hang" => (28, "000"),
            "slow-body" => (28, "200"),
            "reset" => (56, "000"),
            "truncated" => (18, "200"),
            "garbage" => (1, "000"),
            "maintenance" => (0, "200"),
            "unavailable" => (0, "503 7"),
            "brownout" => (0, "500"),
            "rate-limit" => (0, "429 "),
            "permanent" => (0, "401"),
            other => panic!("{other} is not looked at"),
        };
        assert_eq!(seen.0, code, "{mode}: {seen:?}");
        assert!(seen.1.starts_with(begins), "{mode}: {seen:?}");
        assert!(mode != "maintenance" || seen.1.contains("<title>Maintenance"), "{seen:?}");
    }
    served.stop();
}
