//! Every way to get a scenario wrong has its own located error, and every shipped scenario is right.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn simq(args: &[&str], within: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_simq")).args(args).current_dir(within).output().expect("simq starts")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn corpus() -> PathBuf {
    root().join("tests/corpus")
}

/// The names of the TOML files in a directory, in order.
fn files(within: &Path) -> Vec<String> {
    let names = fs::read_dir(within).expect("the directory is there").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> =
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    names
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is text")
}

/// What is wrong with a file, on stderr alone and with exit code 2.
fn refusal(args: &[&str], within: &Path) -> String {
    let output = simq(args, within);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?} printed to stdout");
    assert!(message.starts_with("error: "), "{args:?}: {message}");
    assert!(!message.contains('\u{1b}'), "no colours into a pipe: {message:?}");
    message
}

#[test]
fn each_bad_scenario_has_its_own_error_in_its_place() {
    let names = files(&corpus());
    assert!(names.len() >= 40, "only {} bad scenarios", names.len());
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for name in &names {
        let message = refusal(&["validate", name], &corpus());
        assert!(message.contains(&format!("[{name}:")), "{name} is not located: {message}");
        assert!(message.contains("help: "), "{name} does not say what would be right: {message}");
        let own = message.replace(name.as_str(), "FILE");
        if let Some(other) = seen.insert(own, name) {
            panic!("{name} and {other} have the same error");
        }
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(corpus());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name.trim_end_matches(".toml"), message));
    }
}

#[test]
fn every_shipped_scenario_is_valid_and_said_to_be_in_a_line() {
    let shipped = root().join("scenarios");
    let names = files(&shipped);
    let mut args = vec!["validate"];
    args.extend(names.iter().map(String::as_str));
    let output = simq(&args, &shipped);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let lines = String::from_utf8(output.stdout).expect("text");
    assert_eq!(lines.lines().count(), names.len());
    assert!(lines.contains("outage.toml: ok: 3 policies, 1,550 jobs, 1 outage, 3 runs of at most 30s"), "{lines}");
    for name in &names {
        let text = fs::read_to_string(shipped.join(name)).expect("a scenario");
        assert!(text.starts_with("#:schema ../schema/scenario.json\n# "), "{name} says what it shows");
        assert!(text.contains("\n# Takes about "), "{name} says how long it takes");
        assert!(lines.contains(&format!("{name}: ok: ")), "{lines}");
    }
}

#[test]
fn five_mistakes_are_five_problems() {
    let message = refusal(&["validate", "five-mistakes.toml"], &corpus());
    assert!(message.starts_with("error: `five-mistakes.toml` has 5 problems\n"), "{message}");
    assert_eq!(message.matches("five-mistakes.toml:").count(), 5, "{message}");
}

#[test]
fn all_files_are_looked_at_and_one_bad_one_is_enough_to_fail() {
    let output = simq(&["validate", "workers-zero.toml", "../../scenarios/smoke.toml", "nowhere.toml"], &corpus());
    assert_eq!(output.status.code(), Some(2));
    let stdout = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(stdout.starts_with("../../scenarios/smoke.toml: ok: "), "{stdout}");
    assert!(stderr(&output).contains("workers-zero.toml:9:"), "{}", stderr(&output));
    assert!(stderr(&output).contains("there is no file `nowhere.toml`"), "{}", stderr(&output));
}

#[test]
fn a_mistyped_word_meets_the_one_that_was_meant() {
    for (file, meant) in [
        ("top-unknown-key.toml", "did you mean `stampede_window`?"),
        ("jobs-misspelt-count.toml", "did you mean `count`?"),
        ("workers-unknown-key.toml", "did you mean `slots`?"),
        ("policy-unknown-kind.toml", "did you mean \"exponential\"?"),
        ("jobs-unknown-arrival.toml", "did you mean \"poisson\"?"),
    ] {
        let message = refusal(&["validate", file], &corpus());
        assert!(message.contains(meant), "{file}: {message}");
        assert!(message.contains("has a problem"), "{file}: the key that was meant is not missed as well: {message}");
    }
}

#[test]
fn what_is_no_file_of_text_is_one_clear_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("latin1.toml"), b"name = \"x\"\nabout = \"caf\xe9\"\n").expect("written");
    fs::create_dir(dir.path().join("folder")).expect("made");
    for (name, message) in [
        ("nowhere.toml", "error: there is no file `nowhere.toml`: check the path\n"),
        ("folder", "error: `folder` is a directory: name a scenario file, such as folder/outage.toml\n"),
        ("latin1.toml", "error: `latin1.toml` is not UTF-8 text from line 2 on: save it as UTF-8\n"),
    ] {
        assert_eq!(refusal(&["validate", name], dir.path()), message);
    }
}

#[test]
fn a_file_of_windows_reads_as_well() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = fs::read_to_string(root().join("scenarios/smoke.toml")).expect("a scenario");
    fs::write(dir.path().join("crlf.toml"), text.replace('\n', "\r\n")).expect("written");
    fs::write(dir.path().join("bom.toml"), format!("\u{feff}{text}")).expect("written");
    let output = simq(&["validate", "crlf.toml", "bom.toml"], dir.path());
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn schema_prints_what_is_committed() {
    let output = simq(&["schema"], &root());
    assert!(output.status.success());
    let committed = fs::read(root().join("schema/scenario.json")).expect("the schema is committed");
    assert!(output.stdout == committed, "run `simq schema > schema/scenario.json`");
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_simq"))
        .arg("schema")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("simq starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("simq ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}
