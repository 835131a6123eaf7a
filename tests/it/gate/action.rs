//! The GitHub Action's own script, run as a runner would run it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Desk, SMALL, line_of, root, said};

/// The script of the step `gate` in `action.yml`: what is indented below its `run: |`.
fn script() -> String {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let step = &text[text.find("id: gate").unwrap()..];
    let body = &step[step.find("run: |\n").unwrap() + "run: |\n".len()..];
    body.lines().map(|line| line.strip_prefix("        ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_action_annotates_writes_its_files_and_ends_as_the_gate_does() {
    let desk = Desk::with(SMALL);
    desk.baseline();
    let bin = Path::new(env!("CARGO_BIN_EXE_simq")).parent().unwrap().display().to_string();
    let act = |baseline: &str, arguments: &str| {
        desk.write("output", "");
        desk.write("summary", "");
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()]).current_dir(desk.path(""));
        let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
        let files = [("GITHUB_OUTPUT", "output"), ("GITHUB_STEP_SUMMARY", "summary"), ("RUNNER_TEMP", "temp")];
        bash.env("PATH", path).env_remove("DATABASE_URL").envs(files.map(|(name, file)| (name, desk.path(file))));
        let inputs = [("SCENARIO", "scenario.toml"), ("BASELINE", baseline), ("ARGUMENTS", arguments), ("JUNIT", "gate.xml")];
        bash.envs(inputs.map(|(name, value)| (format!("SIMQ_{name}"), value)));
        said(&mut bash)
    };
    let good = act("base.json", "--strict");
    assert_eq!((good.code, desk.read("output").as_str()), (Some(0), "exit-code=0\n"), "{good:?}");
    assert!(desk.read("gate.xml").contains("<testsuites name=\"simq gate\""), "{good:?}");
    assert!(desk.read("summary").starts_with("### ✅ simq gate: small"), "{good:?}");

    let broken = SMALL.replace("at_most = 2", "at_least = 30");
    desk.write("scenario.toml", &broken);
    let bad = act("", "");
    assert_eq!((bad.code, desk.read("output").as_str()), (Some(3), "exit-code=3\n"), "{bad:?}");
    let line = line_of(&broken, "'lost'");
    assert!(bad.out.contains(&format!("\n::error file=scenario.toml,line={line},")), "{bad:?}");
}

#[test]
fn each_input_of_the_action_is_used_and_the_gitlab_example_is_a_command_that_exists() {
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    for input in ["scenario", "baseline", "arguments", "junit"] {
        assert!(action.contains(&format!("SIMQ_{}: ${{{{ inputs.{input} }}}}", input.to_uppercase())), "{input}");
    }
    let gitlab = fs::read_to_string(root().join("examples/ci/gitlab-ci.yml")).unwrap();
    let command = gitlab.lines().find_map(|line| line.trim().strip_prefix("- simq ")).unwrap();
    let desk = Desk::with(SMALL);
    desk.baseline();
    let command = command.replace("scenarios/ci.toml", "scenario.toml").replace("baselines/ci.json", "base.json");
    let said = desk.simq(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(desk.path("gate.xml").exists() && desk.path("gate.json").exists());
}
