//! `simq run`, as a person or a script sees it: what it prints, what it writes, how it exits, and that it leaves nothing.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{ConnectOptions, Connection};

use crate::cluster;
use crate::play::eventually;
use crate::postgres::{Place, server_pid};
use crate::processes::{signal, until};

const TABLES: [&str; 4] = ["summary.csv", "timeseries.csv", "attempts.csv", "jobs.csv"];

/// A few jobs, one of which is malformed, and two policies: over in a fraction of a second.
const SMALL: &str = "name = 'small'\nhorizon = '30s'\nseed = 3\n\
    [[jobs]]\ntype = 'email'\ncount = 30\nmax_retries = 20\npermanent = 0.1\n\
    [downstream]\nservers = 20\nqueue = 100\nerror_rate = 0.3\nlatency = { kind = 'constant', value = '5ms' }\n\
    [policy.none]\nkind = 'none'\n[policy.constant]\nkind = 'constant'\ndelay = '20ms'\n";

/// Never over: half of the jobs wait for a retry in ten minutes.
const ENDLESS: &str = "name = 'endless'\nhorizon = '1h'\n\
    [[jobs]]\ntype = 'email'\ncount = 40\n\
    [downstream]\nservers = 20\nqueue = 100\nerror_rate = 0.5\nlatency = { kind = 'constant', value = '5ms' }\n\
    [policy.slow]\nkind = 'constant'\ndelay = '10m'\n[policy.next]\nkind = 'none'\n";

/// What its jobs are like when each has been tried once.
const NONE_UNDER_WAY: &str = "bool_or(status = 'retryable') AND bool_and(status IN ('retryable', 'completed'))";

/// A folder for a scenario, its report and the throwaway server.
struct Desk {
    place: Place,
    home: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { place: Place::new(), home: tempfile::tempdir().unwrap() }
    }

    fn out(&self) -> PathBuf {
        self.home.path().join("out")
    }

    /// `simq run` on this scenario.
    fn run(&self, scenario: &str) -> Command {
        let file = self.home.path().join("scenario.toml");
        fs::write(&file, scenario).unwrap();
        self.run_file(&file)
    }

    fn run_file(&self, file: &Path) -> Command {
        let mut simq = self.place.command();
        simq.arg("run").arg(file).arg("--out").arg(self.out()).current_dir(self.home.path());
        for name in ["CLICOLOR_FORCE", "NO_COLOR", "COLUMNS"] {
            simq.env_remove(name);
        }
        simq
    }

    /// Nothing was started, nothing was written.
    fn assert_untouched(&self, said: &Said) {
        assert!(!said.err.contains("ready in") && !self.out().exists(), "{said:?}");
        self.place.assert_clean();
    }

    fn rows(&self, table: &str) -> Vec<std::collections::BTreeMap<String, String>> {
        csv::Reader::from_path(self.out().join(table)).unwrap().deserialize().map(Result::unwrap).collect()
    }

    fn summary(&self) -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(self.out().join("summary.json")).unwrap()).unwrap()
    }
}

/// What a command said, and how it ended.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Said { code: status.code(), out: String::from_utf8(stdout).unwrap(), err: String::from_utf8(stderr).unwrap() }
}

fn with_database(url: &str) -> [&str; 2] {
    ["--database-url", url]
}

#[test]
fn the_smoke_scenario_needs_nothing_and_leaves_a_report_and_nothing_else() {
    let desk = Desk::new();
    let smoke = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/smoke.toml");
    let said = said(&mut desk.run_file(&smoke));
    assert_eq!(said.code, Some(0), "{said:?}");
    desk.place.assert_clean();

    for file in TABLES.into_iter().chain(["summary.json", "requests.png", "peaks.png", "completion.png", "attempts.png"]) {
        let size = fs::metadata(desk.out().join(file)).map_or(0, |meta| meta.len());
        assert!(size > 0, "{file}: {:?}", fs::read_dir(desk.out()).unwrap().flatten().collect::<Vec<_>>());
    }
    let summary = desk.rows("summary.csv");
    let policies: Vec<&str> = summary.iter().map(|row| row["policy"].as_str()).collect();
    assert_eq!(policies, ["none", "exponential", "jitter"]);
    for row in &summary {
        let number = |name: &str| row[name].parse::<u64>().unwrap();
        assert_eq!(number("jobs"), 120);
        assert_eq!(number("completed") + number("discarded") + number("unfinished"), 120, "{row:?}");
        assert!(number("requests") >= 120 && number("wasted_requests") > 0, "{row:?}");
        for name in ["repetition", "amplification", "stampede_peak", "retry_peak", "recovery_peak"] {
            assert!(row[name].parse::<f64>().is_ok(), "{name}: {row:?}");
        }
        for name in ["completion_p50_s", "completion_p99_s", "makespan_s", "time_to_recover_s"] {
            assert!(row[name].is_empty() || row[name].parse::<f64>().is_ok(), "{name}: {row:?}");
        }
        assert_eq!(row["partial"], "false");
    }
    let requests: usize = summary.iter().map(|row| row["requests"].parse::<usize>().unwrap()).sum();
    let attempts = desk.rows("attempts.csv");
    assert_eq!(attempts.len(), requests, "each call is in the log");
    for outcome in ["ok", "status-503", "status-422"] {
        assert!(attempts.iter().any(|row| row["outcome"] == outcome), "the smoke scenario shows {outcome}");
    }
    assert_eq!(desk.rows("jobs.csv").len(), 3 * 120);

    for line in ["ready in", "[1/3] none: starts", "[3/3] jitter: starts", "of 120 jobs completed"] {
        assert!(said.err.contains(line), "{line}: {}", said.err);
    }
    for word in ["none", "exponential", "jitter", "Report: "] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    assert!(!said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'), "no colours in a pipe");
    let entries: Vec<_> = fs::read_dir(desk.home.path()).unwrap().flatten().collect();
    assert_eq!(entries.len(), 1, "the report, and no draft: {entries:?}");
}

#[test]
fn json_is_one_document_and_nothing_else_on_stdout() {
    let desk = Desk::new();
    let said = said(desk.run(SMALL).args(["--json", "--seed", "12", "--repetitions", "2"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&document["seed"], &document["partial"]), (&12.into(), &false.into()));
    let runs = document["runs"].as_array().unwrap();
    let order: Vec<_> = runs.iter().map(|run| (run["policy"].as_str().unwrap(), run["repetition"].as_u64().unwrap())).collect();
    assert_eq!(order, [("none", 1), ("constant", 1), ("none", 2), ("constant", 2)]);
    assert_eq!(runs[0]["seed"], 12);
    assert_ne!(runs[2]["seed"], 12, "a repetition has a seed of its own");
    assert_eq!(document, desk.summary(), "the same as in the report");
    desk.place.assert_clean();
}

#[test]
fn quiet_prints_nothing_and_writes_the_report() {
    let desk = Desk::new();
    let said = said(desk.run(SMALL).args(["--quiet", "--policy", "none"]));
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "", ""));
    assert_eq!(desk.rows("summary.csv").len(), 1, "only the policy that was asked for");
    desk.place.assert_clean();
}

#[test]
fn what_makes_no_sense_is_a_usage_error_before_anything_starts() {
    let bad = SMALL.replace("count = 30", "count = 0");
    for (scenario, words, expected) in [
        (SMALL, &["--no-such-flag"][..], "--no-such-flag"),
        (SMALL, &["--seed", "much"], "--seed"),
        (SMALL, &["--repetitions", "0"], "1..=1000"),
        (SMALL, &["--policy", "full"], "no policy `full`: it has none, constant"),
        (SMALL, &["--keep"], "--database-url"),
        (SMALL, &["--database-url", "mysql://localhost/x"], "postgres://user:password@host:5432/database"),
        (SMALL, &["--database-url", "nonsense"], "postgres://user:password@host:5432/database"),
        (&bad, &[], "scenario.toml"),
    ] {
        let desk = Desk::new();
        let said = said(desk.run(scenario).args(words));
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{words:?}: {said:?}");
        assert!(said.err.contains(expected), "{words:?}: {}", said.err);
        desk.assert_untouched(&said);
    }
}

#[test]
fn a_scenario_that_is_not_there_is_a_usage_error() {
    let desk = Desk::new();
    let said = said(&mut desk.run_file(Path::new("no/such.toml")));
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("there is no file `no/such.toml`"), "{}", said.err);
    desk.assert_untouched(&said);
}

#[test]
fn a_folder_with_a_persons_files_is_refused_before_anything_starts() {
    let desk = Desk::new();
    fs::create_dir(desk.out()).unwrap();
    fs::write(desk.out().join("thesis.txt"), "mine").unwrap();
    let said = said(&mut desk.run(SMALL));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("thesis.txt") && !said.err.contains("ready in"), "{}", said.err);
    assert_eq!(fs::read_to_string(desk.out().join("thesis.txt")).unwrap(), "mine");
    desk.place.assert_clean();
}

#[test]
fn a_database_that_is_not_there_is_one_clear_sentence() {
    let desk = Desk::new();
    let nowhere = format!("postgres://simq@{}/none", desk.place.path().join("nowhere").to_string_lossy().replace('/', "%2F"));
    for url in ["postgres://simq@127.0.0.1:1/none", &nowhere] {
        let said = said(desk.run(SMALL).args(with_database(url)));
        assert_eq!((said.code, said.out.as_str()), (Some(5), ""), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(said.err.starts_with("error: can't connect to the database ("), "{}", said.err);
        assert!(said.err.contains("check that it runs and that the URL is right"), "{}", said.err);
        desk.assert_untouched(&said);
    }
}

#[tokio::test]
async fn database_url_is_honoured_and_its_schemas_are_gone_afterwards() {
    let database = cluster::database().await;
    let desk = Desk::new();
    let mut simq = desk.run(SMALL);
    simq.env("DATABASE_URL", database.to_url_lossy().as_str());
    let said = tokio::task::spawn_blocking(move || said(&mut simq)).await.unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    let name = database.get_database().unwrap();
    assert!(said.err.contains(&format!("/{name}, in schemas named simq_")) && !said.err.contains("ready in"), "{}", said.err);
    assert_eq!(desk.summary()["conditions"]["postgres.kind"], "lent by the user");
    assert_eq!(schemas(&database).await, [""; 0]);
    desk.place.assert_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_takes_the_schema_out_of_a_lent_database() {
    let database = cluster::database().await;
    let desk = Desk::new();
    let mut simq = desk.run(ENDLESS);
    // No second policy is left, so only the run itself can say that it was cut short.
    simq.args(with_database(database.to_url_lossy().as_str()))
        .args(["--policy", "slow"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let simq = simq.spawn().unwrap();
    jobs_are(&database, NONE_UNDER_WAY).await;
    signal(simq.id(), Signal::INT);
    let (code, err) = end(simq);
    assert_eq!(code, Some(130), "{err}");
    assert_eq!(schemas(&database).await, [""; 0]);
    assert_eq!((&desk.rows("summary.csv")[0]["partial"], &desk.summary()["partial"]), (&"true".to_owned(), &true.into()));
}

#[tokio::test]
async fn kept_schemas_are_named_at_the_next_run_and_left_alone() {
    let database = cluster::database().await;
    let desk = Desk::new();
    let url = database.to_url_lossy().to_string();
    let (mut keeping, mut again) = (desk.run(SMALL), desk.run(SMALL));
    keeping.args(with_database(&url)).args(["--keep", "--policy", "none", "--quiet"]);
    again.args(with_database(&url)).args(["--policy", "none"]);
    let first = tokio::task::spawn_blocking(move || said(&mut keeping)).await.unwrap();
    assert_eq!(first.code, Some(0), "{first:?}");
    let kept = schemas(&database).await;
    assert_eq!(kept.len(), 1);
    let second = tokio::task::spawn_blocking(move || said(&mut again)).await.unwrap();
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.err.contains(&format!("DROP SCHEMA {} CASCADE", kept[0])), "{}", second.err);
    assert_eq!(schemas(&database).await, kept);
}

#[test]
fn colours_are_for_those_who_want_them() {
    let desk = Desk::new();
    let bad = SMALL.replace("count = 30", "count = 0");
    let escapes = |environment: &[(&str, &str)]| said(desk.run(&bad).envs(environment.iter().copied())).err.contains('\u{1b}');
    assert!(!escapes(&[]), "a pipe");
    assert!(escapes(&[("CLICOLOR_FORCE", "1")]), "there are colours to be had");
    assert!(!escapes(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let desk = Desk::new();
    let mut simq = desk.run(SMALL).args(["--policy", "none"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(simq.stdout.take());
    let (code, err) = end(simq);
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("panicked"), "{err}");
    assert!(desk.out().join("summary.csv").exists());
    desk.place.assert_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_and_sigterm_write_what_there_is_and_leave_nothing() {
    for stop in [Signal::INT, Signal::TERM] {
        let desk = Desk::new();
        let simq = in_mid_run(&desk).await;
        signal(simq.id(), stop);
        let (code, err) = end(simq);
        assert_eq!(code, Some(130), "{err}");
        desk.place.assert_clean();
        assert!(err.contains("stopping: what is under way is finished"), "{err}");
        let rows = desk.rows("summary.csv");
        assert_eq!(rows.len(), 1, "the second policy was never begun");
        assert_eq!((rows[0]["policy"].as_str(), rows[0]["partial"].as_str()), ("slow", "true"));
        assert!(rows[0]["unfinished"].parse::<u64>().unwrap() > 0, "{rows:?}");
        assert_eq!(rows[0]["makespan_s"], "", "it has none");
        assert_eq!((&desk.summary()["partial"], &desk.summary()["runs"][0]["partial"]), (&true.into(), &true.into()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_ctrl_c_ends_it_at_once_and_leaves_nothing_either() {
    let desk = Desk::new();
    let slow = ENDLESS.replace("'5ms'", "'10m'") + "[workers]\nlease = '2h'\n";
    let slow = slow.replace("queue = 100\n", "queue = 100\nclient_timeout = '1h'\n");
    let mut simq = started(&desk, &slow, "bool_or(status = 'running')").await;
    signal(simq.id(), Signal::INT);
    let mut err = BufReader::new(simq.stderr.take().unwrap());
    let waits = err.by_ref().lines().map(Result::unwrap).any(|line| line.starts_with("stopping: "));
    assert!(waits, "for calls that take ten minutes");
    signal(simq.id(), Signal::INT);
    assert_eq!(simq.wait().unwrap().code(), Some(130));
    desk.place.becomes_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_sigkill_the_server_goes_too_and_the_next_run_works() {
    let desk = Desk::new();
    let simq = in_mid_run(&desk).await;
    signal(simq.id(), Signal::KILL);
    assert_eq!(end(simq).0, None);
    let next = said(desk.run(SMALL).args(["--policy", "none"]));
    assert_eq!(next.code, Some(0), "{next:?}");
    desk.place.becomes_clean();
    assert_eq!(desk.rows("summary.csv").len(), 1);
    let entries: Vec<_> = fs::read_dir(desk.home.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(entries.len(), 2, "the scenario and the report: {entries:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_in_mid_run_is_an_environment_error_that_says_so() {
    let desk = Desk::new();
    let simq = in_mid_run(&desk).await;
    signal(server_pid(&desk.place), Signal::KILL);
    let (code, err) = end(simq);
    assert_eq!(code, Some(5), "{err}");
    assert!(err.contains("error: the throwaway PostgreSQL ended by itself: signal: 9"), "{err}");
    assert!(!desk.out().exists(), "there is nothing to report");
    desk.place.becomes_clean();
}

#[test]
fn strict_says_when_the_harness_spoiled_the_measurement() {
    let desk = Desk::new();
    let said = said(desk.run(SMALL).args(["--policy", "none", "--strict"]));
    let spoiled = !desk.summary()["warnings"].as_array().unwrap().is_empty() || desk.rows("summary.csv")[0]["limit"] == "harness";
    assert_eq!(said.code, Some(if spoiled { 4 } else { 0 }), "{said:?}");
    assert!(spoiled || !cfg!(debug_assertions), "a debug build always is");
}

/// A run of the endless scenario, in which jobs have failed and wait.
async fn in_mid_run(desk: &Desk) -> Child {
    started(desk, ENDLESS, NONE_UNDER_WAY).await
}

/// A run of this scenario, on a throwaway server, whose jobs are as the condition says.
async fn started(desk: &Desk, scenario: &str, condition: &str) -> Child {
    let simq = desk.run(scenario).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let directory = until("the server", || desk.place.directories().pop());
    let options = PgConnectOptions::new_without_pgpass().socket(directory).username("simq").database("postgres");
    jobs_are(&options.ssl_mode(PgSslMode::Disable), condition).await;
    simq
}

/// Waits until a run in this database is so far that the condition holds of its jobs.
async fn jobs_are(database: &PgConnectOptions, condition: &str) {
    eventually("the run to be under way", async || {
        let mut connection = PgConnection::connect_with(database).await.ok()?;
        let schema = schemas_of(&mut connection).await.pop()?;
        let query = sqlx::AssertSqlSafe(format!("SELECT coalesce({condition}, false) FROM {schema}.jobs"));
        sqlx::query_scalar::<_, bool>(query).fetch_one(&mut connection).await.ok()?.then_some(())
    })
    .await;
}

/// The exit code and what was said on stderr, to its end.
fn end(mut simq: Child) -> (Option<i32>, String) {
    let mut err = String::new();
    simq.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (simq.wait().unwrap().code(), err)
}

async fn schemas(database: &PgConnectOptions) -> Vec<String> {
    schemas_of(&mut PgConnection::connect_with(database).await.unwrap()).await
}

async fn schemas_of(connection: &mut PgConnection) -> Vec<String> {
    let query = "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'simq\\_%' ORDER BY 1";
    sqlx::query_scalar(query).fetch_all(connection).await.unwrap()
}

#[test]
fn a_report_that_could_not_be_put_in_place_is_refused_before_anything_starts() {
    let desk = Desk::new();
    let file = desk.home.path().join("scenario.toml");
    fs::write(&file, SMALL).unwrap();
    let to = |out: &str| said(desk.place.command().arg("run").arg(&file).args(["--out", out]).current_dir(desk.home.path()));
    let here = to(".");
    assert_eq!(here.code, Some(2), "{here:?}");
    assert!(here.err.contains("current directory"), "{here:?}");
    let nowhere = to("/proc/simq");
    assert_eq!((nowhere.code, nowhere.out.as_str()), (Some(5), ""), "{nowhere:?}");
    assert!(!nowhere.err.contains("starts"), "{nowhere:?}");
}

#[test]
fn a_stderr_that_nobody_can_write_to_stops_nothing() {
    let desk = Desk::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = desk.run(SMALL).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(desk.out().join("summary.csv").exists());
}
