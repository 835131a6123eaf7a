//! How many requests a second the mock serves on one core, beside a bare hyper "hello" server in the same run.
//!
//! Both servers have one thread of their own and meet the same client: connections kept alive, one request after another on each. Rounds
//! alternate. What a server costs is its thread's time on a processor, as the kernel counts it; so the client's cost is told
//! apart, and "requests per second on one core" is one over the time per request. Run it on an idle machine:
//! `cargo bench --bench mock`. Linux only.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark measures this machine's time")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use simq::downstream::{Downstream, Settings};
use simq::real::{Clock, Mock, Setup};
use simq::rng::Seed;

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);
/// What the mock must reach of the bare server's rate.
const LEAST: f64 = 0.7;

fn main() {
    let hello = hello();
    let settings = Settings { servers: 1000, ..Settings::default() };
    let setup = Setup { keep: false, ..Setup::of_a_run() };
    let mock = Mock::start(Downstream::new(settings, Seed(1)), Clock::starting_in(Duration::ZERO), &setup).expect("it starts");
    for (name, address) in [("hello", hello), ("downstream", mock.address())] {
        load(name, address, Duration::from_millis(300));
    }
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        rounds[0].push(load("hello", hello, ROUND));
        rounds[1].push(load("downstream", mock.address(), ROUND));
    }
    println!("server      requests/s  server µs/request  on one core/s  client µs/request");
    let [hello, mock] = rounds.map(median);
    for (name, round) in [("hello", &hello), ("simq mock", &mock)] {
        println!(
            "{name:<11} {:>10.0} {:>18.2} {:>14.0} {:>18.2}",
            round.rate,
            round.server * 1e6,
            1.0 / round.server,
            round.client * 1e6
        );
    }
    let ratio = hello.server / mock.server;
    println!("ratio on one core: {ratio:.2} (at least {LEAST})");
    assert!(ratio >= LEAST, "the mock is too slow");
}

/// One round's figures: requests per second, and seconds of a processor per request.
#[derive(Clone, Copy)]
struct Round {
    rate: f64,
    server: f64,
    client: f64,
}

/// The round with the median cost.
fn median(mut rounds: Vec<Round>) -> Round {
    rounds.sort_by(|a, b| a.server.total_cmp(&b.server));
    rounds[rounds.len() / 2]
}

fn load(server: &str, address: SocketAddr, lasts: Duration) -> Round {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (server_before, all_before, began) = (on_processor(Some(server)), on_processor(None), Instant::now());
    // Clients end inside the scope, so their time is read before it: threads that are gone are no longer listed.
    let mut after = (0.0, 0.0, 0.0);
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| client(address, &done, &stop));
        }
        std::thread::sleep(lasts);
        after = (on_processor(Some(server)), on_processor(None), began.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
    });
    let requests = done.load(Ordering::Relaxed) as f64;
    let cost = after.0 - server_before;
    Round { rate: requests / after.2, server: cost / requests, client: (after.1 - all_before - cost) / requests }
}

fn client(address: SocketAddr, done: &AtomicU64, stop: &AtomicBool) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("a socket takes it");
    let mut answer = [0_u8; 1024];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(b"GET /email HTTP/1.1\r\nhost: mock\r\n\r\n").expect("it is connected");
        let mut length = 0;
        while !answer[..length].ends_with(b"{\"ok\":true}") {
            length += stream.read(&mut answer[length..]).expect("it answers");
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Seconds that the threads of this name, or all, have been on a processor.
fn on_processor(name: Option<&str>) -> f64 {
    let mut nanos = 0_u64;
    for task in fs::read_dir("/proc/self/task").expect("this is Linux").flatten() {
        let named = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.is_none_or(|name| named.trim() == name) {
            let stat = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            nanos += stat.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    nanos as f64 / 1e9
}

/// A bare hyper server that says what the mock says.
fn hello() -> SocketAddr {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let listener = {
        let _inside = runtime.enter();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a socket takes it");
        tokio::net::TcpListener::from_std(listener).expect("it is one")
    };
    let address = listener.local_addr().expect("it is bound");
    let serve = async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            let service = service_fn(|_: Request<Incoming>| async {
                let answer = Response::builder().header("content-type", "application/json");
                answer.body(Full::new(Bytes::from_static(b"{\"ok\":true}")))
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    };
    std::thread::Builder::new().name("hello".into()).spawn(move || runtime.block_on(serve)).expect("a thread");
    address
}
