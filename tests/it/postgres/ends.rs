//! Every way to end `simq postgres`, and that it leaves no process and no directory.

use std::process::Stdio;

use rustix::process::Signal;

use super::{Place, Running, server_pid};
use crate::processes::{self, Process, signal, until};

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
    until("the command", || processes::child(simq.id(), "sleep"));
    signal(simq.id(), Signal::TERM);
    assert_eq!(simq.wait_with_output().unwrap().status.code(), Some(128 + 15));
    place.assert_clean();
}

#[test]
fn a_signal_that_kills_simq_takes_the_server_with_it() {
    let place = Place::new();
    let simq = Running::start(&mut place.simq());
    signal(simq.pid(), Signal::KILL);
    // Also reads stderr to its end: the guard must not hold it open.
    assert_eq!(simq.end().0, None);
    place.becomes_clean();
}

/// Or the command would hold the guard's pipe open.
#[test]
fn the_server_goes_with_simq_even_if_the_command_lives_on() {
    let place = Place::new();
    let mut simq = place.simq().args(["--", "sleep", "600"]).stderr(Stdio::null()).spawn().unwrap();
    let command = until("the command", || processes::child(simq.id(), "sleep"));
    signal(simq.id(), Signal::KILL);
    simq.wait().unwrap();
    place.becomes_clean();
    signal(command.pid, Signal::TERM);
}

#[test]
fn sigkill_of_simq_during_initdb_leaves_nothing() {
    let place = Place::new();
    let mut command = place.simq();
    let mut simq = command.env("SIMQ_CACHE_DIR", place.folder("cache")).stderr(Stdio::null()).spawn().unwrap();
    let in_place = |process: &Process| process.command.contains("initdb");
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
    let command = until("the command", || processes::child(simq.id(), "sleep"));
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
