//! `simq calibrate` and `simq fidelity`: the machine is measured, and virtual time predicts what the real run shows.

use std::fs;
use std::process::{Command, Output};

use simq::profile::Profile;

use crate::postgres::Place;

/// Jobs that fail for most of a second and come back: delays, and not the speed of this machine, decide how it goes.
const SCENARIO: &str = "name = 'both'\nhorizon = '20s'\nseed = 5\n\
    [[jobs]]\ntype = 'email'\ncount = 60\nmax_retries = 20\n\
    [workers]\ncount = 2\nslots = 16\nwait = 'listen'\n\
    [downstream]\nservers = 20\nqueue = 100\nlatency = { kind = 'constant', value = '20ms' }\n\
    [[downstream.outage]]\nat = '0s'\nlasts = '1500ms'\nmode = 'unavailable'\n\
    [policy.exponential]\nkind = 'exponential'\nbase = '400ms'\ncap = '800ms'\n\
    [policy.jitter]\nkind = 'exponential'\nbase = '400ms'\ncap = '800ms'\njitter = 'full'\n";

/// How far a prediction of an unloaded machine may be off when the test's own machine is as busy as it likes.
const NEAR: f64 = 0.35;

struct Desk {
    place: Place,
    home: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { place: Place::new(), home: tempfile::tempdir().unwrap() };
        fs::write(desk.home.path().join("both.toml"), SCENARIO).unwrap();
        desk
    }

    fn simq(&self, words: &[&str]) -> Output {
        let mut simq: Command = self.place.command();
        let output = simq.args(words).current_dir(self.home.path()).env_remove("COLUMNS").output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        output
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_calibrated_machine_is_the_one_that_sim_plays_on() {
    let desk = Desk::new();
    assert!(out(&desk.simq(&["sim", "both.toml"])).contains(&Profile::built_in().about));
    let said = out(&desk.simq(&["calibrate", "--quick"]));
    assert!(said.contains("full load, batches of 32") && said.contains("[claim]"), "{said}");
    let profile = Profile::parse(&fs::read_to_string(desk.home.path().join("simq-profile.toml")).unwrap()).unwrap();
    assert!(profile.claim.work_us > 0.0 && profile.call.work_us > 0.0 && profile.timer.late_us >= 0.0, "{profile:?}");
    assert!(out(&desk.simq(&["sim", "both.toml"])).contains(&profile.about), "it is found where it was written");
    desk.place.assert_clean();
}

#[test]
fn virtual_time_predicts_the_real_run() {
    let desk = Desk::new();
    fs::write(desk.home.path().join("machine.toml"), Profile::built_in().to_toml()).unwrap();
    let words = ["fidelity", "both.toml", "--profile", "machine.toml", "--repetitions", "1", "--seeds", "20", "--json"];
    let rows = desk.simq(&words);
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&rows.stdout).unwrap();
    for metric in ["requests", "completion_p99_s", "makespan_s"] {
        for policy in ["exponential", "jitter"] {
            let row = rows.iter().find(|row| row["metric"] == metric && row["policy"] == policy).unwrap();
            assert!(row["error"].as_f64().unwrap().abs() < NEAR, "{row}");
        }
    }
    let report = desk.home.path().join("reports/both-fidelity");
    for file in ["fidelity.md", "fidelity.csv", "fidelity.json", "requests-jitter.png", "completion-exponential.png"] {
        assert!(report.join(file).metadata().unwrap().len() > 0, "{file}");
    }
    desk.place.assert_clean();
}
