//! Backlogs and crowds: a million jobs that wait for their retry are in nobody's way, and a thousand workers share ten connections.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use simq::downstream::{Downstream, Settings};
use simq::real::{Clock, End, Mock, Setup};
use simq::rng::Seed;

use crate::bench::{Bench, New};
use crate::cluster;
use crate::play::{eventually, plan, scenario};

const BACKED_OFF: u64 = 1_000_000;
const NEW: u64 = 300;

/// Megabytes that a process of workers may have had resident at the most; an idle one has some thirty in a debug build.
const MEMORY_MB: u64 = 200;

fn worker(bench: &Bench, downstream: SocketAddr) -> Child {
    let options = bench.schema.options();
    let socket = options.get_socket().unwrap().display().to_string().replace('/', "%2F");
    let (user, port) = (options.get_username(), options.get_port());
    let url = format!("postgres://{user}@{socket}:{port}/{}?sslmode=disable", options.get_database().unwrap());
    Command::new(env!("CARGO_BIN_EXE_simq"))
        .args(["work", "--database-url", &url, "--schema", bench.schema.name(), "--downstream", &downstream.to_string()])
        .args(["--first", "0", "--count", "4", "--slots", "16"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_backed_off_jobs_are_in_nobodys_way() {
    let mut bench = Bench::new().await;
    bench
        .execute(&format!(
            "INSERT INTO scheduled (id, rank, type, payload, retries, max_retries, created_at, schedule_at, last_delay_ns, failure)
             SELECT id, id % 3, 'email', '{{}}', 1, 5, now(), now() + interval '1 day', 1, 'status-503'
             FROM generate_series(1001, {}) AS id",
            1000 + BACKED_OFF
        ))
        .await;
    let new: Vec<New> = (1..=NEW).map(|id| New { id, priority: 0, max_retries: 5 }).collect();
    bench.insert(&new).await;
    let downstream = Downstream::new(Settings { servers: 100, ..Settings::default() }, Seed(1));
    let mock = Mock::start(downstream, Clock::starting_in(Duration::ZERO), &Setup::of_a_run()).unwrap();
    let mut worker = worker(&bench, mock.address());
    let left = "SELECT (SELECT count(*) FROM ready) + (SELECT count(*) FROM lease)";
    eventually("the new jobs to be done", async || (bench.ask(left).await == "0").then_some(())).await;
    if let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", worker.id())) {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).and_then(|text| text.split_whitespace().next());
        let peak: u64 = peak.unwrap().parse().unwrap();
        assert!(peak / 1024 < MEMORY_MB, "{} MB for {NEW} jobs", peak / 1024);
    }
    drop(worker.stdin.take());
    worker.wait().unwrap();
    assert_eq!(mock.stop().arrivals, NEW);
    assert_eq!(bench.ask("SELECT count(*) FROM scheduled").await, BACKED_OFF.to_string(), "and those wait on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_workers_share_ten_connections() {
    let scenario = scenario(
        "horizon = '10m'\n[[jobs]]\ntype = 'email'\ncount = 2000\nmax_retries = 20\n\
         [workers]\ncount = 1000\nslots = 1\nconnections = 10\nlease = '2m'\nwait = 'listen'\npoll = '5s'\n\
         [downstream]\nservers = 2000\nqueue = 2000\nerror_rate = 0.1\nlatency = { kind = 'constant', value = '20ms' }\n\
         client_timeout = '1m'\n[policy.steady]\nkind = 'constant'\ndelay = '50ms'\n",
    );
    let database = cluster::database().await;
    let outcome = simq::real::run(plan(&scenario, 0, &database, "simq_test")).await.unwrap();
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Finished, &[][..]));
    assert_eq!(outcome.summary.counts.completed, 2000);
    assert_eq!(outcome.summary.store_failures, 0, "the server's limit was never met");
    let workers: std::collections::BTreeSet<u32> = outcome.record.attempts.iter().map(|attempt| attempt.worker).collect();
    assert!(workers.len() > 100, "{} workers had work", workers.len());
}
