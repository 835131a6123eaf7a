//! The admin API: what it does, and what it says to those who get it wrong.

use serde_json::json;

use super::{serve, wire};

#[test]
fn faults_are_started_and_ended_by_hand() {
    let served = serve("[[downstream.outage]]\nat = '0s'\nlasts = '1h'\nmode = 'unavailable'\n", &[]);
    assert_eq!(served.get().status, 503);
    let state = served.state();
    assert_eq!(
        (&state["faults"][0]["id"], &state["faults"][0]["mode"], &state["faults"][0]["active"]),
        (&json!(1), &json!("unavailable"), &json!(true))
    );
    assert_eq!(state["steered_by_hand"], false);
    assert_eq!(served.ask("DELETE", "/faults/1", "").0, 200);
    assert_eq!(served.get().status, 200);
    let (status, started) = served.ask("POST", "/faults", r#"{"mode": "permanent", "code": 404}"#);
    assert_eq!((status, &started["id"]), (201, &json!(2)));
    assert_eq!(served.get().status, 404);
    let state = served.state();
    assert_eq!((&state["steered_by_hand"], &state["requests"]), (&json!(true), &json!(3)));
    assert_eq!(state["outcomes"], json!({ "ok": 1, "status-503": 1, "status-404": 1 }));
    let (status, state) = served.ask("POST", "/reset", "");
    assert_eq!((status, &state["requests"], state["faults"].as_array().unwrap().len()), (200, &json!(0), 1));
    assert_eq!(served.get().status, 503, "the scenario's faults are back");
    served.stop();
}

#[test]
fn the_timeline_can_be_frozen_and_waits_for_the_first_request_if_told_to() {
    let served = serve("", &["--start", "on-first-request"]);
    let timeline = served.state()["timeline"].clone();
    assert_eq!(timeline, json!({ "at_s": 0.0, "frozen": true, "waits_for_first_request": true }));
    served.get();
    let timeline = served.state()["timeline"].clone();
    assert_eq!((&timeline["frozen"], &timeline["waits_for_first_request"]), (&json!(false), &json!(false)));
    let (status, frozen) = served.ask("POST", "/timeline/freeze", "");
    assert_eq!((status, &frozen["timeline"]["frozen"]), (200, &json!(true)));
    served.get();
    assert_eq!(served.state()["timeline"]["at_s"], frozen["timeline"]["at_s"], "it stands still");
    let (status, resumed) = served.ask("POST", "/timeline/resume", "");
    assert_eq!((status, &resumed["timeline"]["frozen"]), (200, &json!(false)));
}

#[test]
fn a_fault_that_is_wrong_is_refused_with_what_would_be_right() {
    let served = serve("", &[]);
    for (body, says) in [
        ("", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("{}", "`mode` is missing"),
        (r#"{"mode": "brown-out"}"#, "did you mean \"brownout\"?"),
        (r#"{"mode": "refuse", "probability": 0.5}"#, "`probability` means nothing"),
        (r#"{"mode": "reset", "lasts": 5}"#, "a duration needs a unit"),
        (r#"{"mode": "reset", "every": "5s"}"#, "`every` means nothing without `lasts`"),
        (r#"{"mode": "rate-limit"}"#, "`rate` is missing"),
        (r#"{"mode": "permanent", "code": 500}"#, "write a whole number from 400 to 499"),
        (r#"{"mode": "hang", "lsats": "5s"}"#, "did you mean `lasts`?"),
    ] {
        let (status, answer) = served.ask("POST", "/faults", body);
        let error = answer["error"].as_str().unwrap();
        assert!(status == 400 && error.contains(says), "{body}: {answer}");
        assert!(answer["help"].as_str().unwrap().contains("unavailable"));
    }
    assert_eq!(served.state()["faults"], json!([]));
    assert_eq!(served.state()["steered_by_hand"], false);
}

#[test]
fn an_unknown_command_is_told_which_there_are() {
    let served = serve("", &[]);
    let (status, answer) = served.ask("GET", "/stat", "");
    assert_eq!((status, &answer["error"]), (404, &json!("there is no command `GET /stat`")));
    assert_eq!(answer["commands"], served.ask("GET", "/", "").1["commands"]);
    assert!(answer["commands"][0].as_str().unwrap().starts_with("GET /state"));
    let answer = wire::ask(served.admin, "GET", "/faults", &[], "");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert!(String::from_utf8(answer.body).unwrap().contains("`/faults` takes POST, not GET"));
    assert_eq!(served.ask("PUT", "/faults/1", "").0, 405);
    assert_eq!(served.ask("DELETE", "/faults/one", "").0, 400);
    let (status, answer) = served.ask("DELETE", "/faults/9", "");
    assert_eq!((status, &answer["error"]), (404, &json!("there is no fault 9")));
    let page = wire::ask(served.admin, "POST", "/reset", &[("origin", "http://elsewhere.example")], "");
    assert_eq!(page.status, 403, "a web page has no business here");
    assert_eq!(served.ask("POST", "/faults", &"x".repeat(100_000)).0, 413);
}

#[test]
fn the_metrics_are_in_prometheus_text_format() {
    let served = serve("[[downstream.outage]]\nat = '0s'\nlasts = '1h'\nmode = 'maintenance'\n", &[]);
    served.get();
    let answer = wire::ask(served.admin, "GET", "/metrics", &[], "");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
    let page = String::from_utf8(answer.body).unwrap();
    assert!(page.contains("simq_mock_requests_total{outcome=\"wrong-body\"} 1\n"), "{page}");
    assert!(page.contains("simq_mock_fault_active{id=\"1\",mode=\"maintenance\"} 1\n"), "{page}");
    for line in page.lines().filter(|line| !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap().trim_end_matches("_sum").trim_end_matches("_count");
        assert!(value.parse::<f64>().is_ok() && page.contains(&format!("# TYPE {family} ")), "{line}");
    }
}
