//! `kill -9` and `kill -STOP` of a real process of workers, in every state that a job can be in with it.

use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use simq::downstream::{Downstream, Settings};
use simq::job::State;
use simq::metrics::Row;
use simq::metrics::{Service, ledger};
use simq::real::pg::{Schema, is_idle, rows};
use simq::real::{Clock, Mock, Setup};
use simq::rng::Seed;
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::bench::{Bench, New};
use crate::cluster;
use crate::play::eventually;
use crate::processes;
use crate::proxy::{Act, CLAIM, Proxy, Rule, SETTLE, Side};

const JOBS: u64 = 10;
/// How many a process takes at once.
const SLOTS: u64 = 3;
const LEASE_MS: u32 = 2500;

/// A queue with ten jobs, and a healthy service.
struct Field {
    bench: Bench,
    database: PgConnectOptions,
    mock: Mock,
}

impl Field {
    async fn new() -> Field {
        let database = cluster::database().await;
        let schema = Schema::create(&database, "simq_faults", "simq test").await.unwrap();
        let mut bench = Bench::in_schema(schema).await;
        let jobs: Vec<New> = (1..=JOBS).map(|id| New { id, priority: 0, max_retries: 5 }).collect();
        bench.insert(&jobs).await;
        let downstream = Downstream::new(Settings { servers: 100, ..Settings::default() }, Seed(1));
        let mock = Mock::start(downstream, Clock::starting_in(Duration::ZERO), &Setup::of_a_run()).unwrap();
        Field { bench, database, mock }
    }

    fn url(&self) -> String {
        let socket = self.database.get_socket().unwrap().display().to_string().replace('/', "%2F");
        let (user, port) = (self.database.get_username(), self.database.get_port());
        format!("postgres://{user}@{socket}:{port}/{}?sslmode=disable", self.database.get_database().unwrap())
    }

    /// Another process does what is left; then every job is completed, and there once.
    async fn finish(mut self) -> (Vec<Row>, Vec<Service>) {
        let second = worker(&self.url(), self.mock.address(), 100);
        eventually("the queue to be empty", async || is_idle(&mut self.bench.connection).await.unwrap().then_some(())).await;
        drop(second);
        let rows = rows(&self.bench.schema).await.unwrap();
        let ids: Vec<simq::job::JobId> = (1..=JOBS).map(simq::job::JobId).collect();
        assert_eq!(ledger(&ids, &rows.iter().map(|row| row.job).collect::<Vec<_>>(), true), [""; 0]);
        assert!(rows.iter().all(|row| row.state == State::Completed), "{rows:?}");
        (rows, self.mock.stop().services)
    }
}

/// A process of workers; it is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn worker(url: &str, downstream: SocketAddr, first: u32) -> Killed {
    let child = Command::new(env!("CARGO_BIN_EXE_simq"))
        .args(["work", "--database-url", url, "--schema", "simq_faults", "--downstream", &downstream.to_string()])
        .args(["--first", &first.to_string(), "--slots", &SLOTS.to_string(), "--lease-ms", &LEASE_MS.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    Killed(child.unwrap())
}

/// Kills a process at its first such statement, on this side of its commit, and lets another one finish.
async fn killed_at(texts: &'static [&'static str], side: Side) -> (Vec<Row>, Vec<Service>, u64) {
    let mut field = Field::new().await;
    let mut proxy = Proxy::start(Rule { texts, side, act: Act::Hold, turns: vec![1] }).await;
    let first = worker(&proxy.url(&field.database), field.mock.address(), 0);
    proxy.struck().await;
    drop(first);
    let done = field.bench.ask("SELECT count(*) FROM jobs WHERE status = 'completed'").await.parse().unwrap();
    let (rows, services) = field.finish().await;
    (rows, services, done)
}

fn repeated(rows: &[Row]) -> u64 {
    assert!(rows.iter().all(|row| row.retries <= 1), "{rows:?}");
    rows.iter().filter(|row| row.retries == 1).count() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_its_claim_has_committed_a_process_has_taken_nothing() {
    let (rows, services, _) = killed_at(CLAIM, Side::Before).await;
    assert_eq!((repeated(&rows), services.len() as u64), (0, JOBS));
    assert!(services.iter().all(|service| service.attempt == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_when_its_claim_has_committed_a_process_costs_a_retry_and_no_call() {
    let (rows, services, _) = killed_at(CLAIM, Side::After).await;
    assert_eq!((repeated(&rows), services.len() as u64), (SLOTS, JOBS));
    assert_eq!(services.iter().filter(|service| service.attempt == 2).count() as u64, SLOTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_before_its_settlement_has_committed_a_process_has_called_in_vain() {
    let (rows, services, done) = killed_at(SETTLE, Side::Before).await;
    assert_eq!((done, repeated(&rows), services.len() as u64), (0, SLOTS, JOBS + SLOTS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_when_its_settlement_has_committed_a_process_has_done_what_it_settled() {
    let (rows, services, done) = killed_at(SETTLE, Side::After).await;
    assert!((1..=SLOTS).contains(&done), "{done} jobs were settled, and nobody was told");
    assert_eq!((repeated(&rows), services.len() as u64), (SLOTS - done, JOBS + SLOTS - done));
}

/// A service that takes calls and keeps them.
async fn take_calls(listener: &TcpListener) -> Vec<TcpStream> {
    let mut calls = Vec::new();
    for _ in 0..SLOTS {
        let (mut call, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !String::from_utf8_lossy(&head).contains("simq-job") {
            let mut more = [0; 1024];
            let read = call.read(&mut more).await.unwrap();
            head.extend_from_slice(&more[..read]);
        }
        calls.push(call);
    }
    calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_it_waits_for_answers_a_process_makes_others_call_again() {
    let field = Field::new().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let first = worker(&field.url(), silent.local_addr().unwrap(), 0);
    let calls = take_calls(&silent).await;
    drop(first);
    let (rows, services) = field.finish().await;
    assert_eq!((repeated(&rows), services.len() as u64), (SLOTS, JOBS), "beside the {} calls that were in vain", calls.len());
    assert_eq!(services.iter().filter(|service| service.attempt == 2).count() as u64, SLOTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_past_its_leases_a_process_settles_in_vain() {
    let field = Field::new().await;
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut first = worker(&field.url(), slow.local_addr().unwrap(), 0);
    let calls = take_calls(&slow).await;
    processes::signal(first.0.id(), Signal::STOP);
    let database = field.database.clone();
    let (rows, services) = field.finish().await;
    assert_eq!((repeated(&rows), services.len() as u64), (SLOTS, JOBS));
    for mut call in calls {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"ok\":true}";
        call.write_all(answer.as_bytes()).await.unwrap();
    }
    processes::signal(first.0.id(), Signal::CONT);
    drop(first.0.stdin.take());
    let mut said = String::new();
    tokio::task::block_in_place(|| first.0.stdout.take().unwrap().read_to_string(&mut said)).unwrap();
    assert_eq!(said, format!("sent {SLOTS} completed 0 lost {SLOTS}\n"), "its answers came, and it settled in vain");
    let inside = database.options([("search_path", "simq_faults")]);
    let mut connection = PgConnection::connect_with(&inside).await.unwrap();
    let twice: i64 =
        sqlx::query_scalar("SELECT count(*) - count(DISTINCT id) FROM jobs").fetch_one(&mut connection).await.unwrap();
    assert_eq!(twice, 0);
}
