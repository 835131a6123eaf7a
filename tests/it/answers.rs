//! Answers that never come: the server has committed, and the connection breaks before it can say so.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use simq::policy::Why;
use simq::queue::{Claim, ClaimMode, How, Settlement};
use simq::real::pg::{Schema, Store};
use simq::worker::{Settings, Wait};
use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::bench::{Bench, MINUTE, New};
use crate::play::eventually;

/// Stands between a store and the server, and passes everything on, until it is told to keep the next answer to itself.
struct Gate {
    directory: tempfile::TempDir,
    port: u16,
    shut: Arc<AtomicBool>,
}

impl Gate {
    fn before(server: &PgConnectOptions) -> Gate {
        let gate =
            Gate { directory: tempfile::tempdir().unwrap(), port: server.get_port(), shut: Arc::new(AtomicBool::new(false)) };
        let listener = UnixListener::bind(gate.directory.path().join(format!(".s.PGSQL.{}", gate.port))).unwrap();
        let (socket, host) = (server.get_socket().cloned(), server.get_host().to_owned());
        let (port, shut) = (gate.port, gate.shut.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, socket.clone(), host.clone(), port, shut.clone()));
            }
        });
        gate
    }

    /// The next answer does not come through: its connection is cut instead.
    fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    async fn store(&self, schema: &Schema) -> Store {
        let options = schema.options().clone().socket(self.directory.path());
        let wait = Wait::Due { at_most: MINUTE };
        let settings = Settings { count: 1, slots: 4, connections: 1, claim: ClaimMode::Lease, batch: 4, lease: MINUTE, wait };
        Store::open_strict(&schema.reached_by(options), &settings).await.unwrap()
    }
}

/// What the server says first has been committed, if the client asked for one thing, small and known to the server.
async fn pass(client: UnixStream, socket: Option<PathBuf>, host: String, port: u16, shut: Arc<AtomicBool>) {
    let (from_client, to_client) = client.into_split();
    match socket {
        Some(directory) => {
            let (answers, asks) = UnixStream::connect(directory.join(format!(".s.PGSQL.{port}"))).await.unwrap().into_split();
            tokio::select! { () = copy(from_client, asks, None) => {}, () = copy(answers, to_client, Some(shut)) => {} }
        }
        None => {
            let (answers, asks) = TcpStream::connect((host, port)).await.unwrap().into_split();
            tokio::select! { () = copy(from_client, asks, None) => {}, () = copy(answers, to_client, Some(shut)) => {} }
        }
    }
}

async fn copy(mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, shut: Option<Arc<AtomicBool>>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if shut.as_ref().is_some_and(|shut| shut.swap(false, Ordering::SeqCst)) || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

fn new(id: u64) -> New {
    New { id, priority: 0, max_retries: 3 }
}

fn complete(claim: &Claim) -> Settlement {
    Settlement { job: claim.job, token: claim.token, how: How::Complete }
}

/// A store behind a gate, that has claimed and settled before, so that the server knows its statements.
async fn behind_a_gate() -> (Bench, Gate, Store) {
    let mut bench = Bench::new().await;
    bench.insert(&(1..=9).map(new).collect::<Vec<_>>()).await;
    let gate = Gate::before(bench.schema.options());
    let store = gate.store(&bench.schema).await;
    let claims = store.claim(0, 2, MINUTE).await.unwrap().claims;
    let retry = How::Retry { after: 9 * MINUTE, reason: "status-503".into() };
    store.settle(&[Settlement { how: retry, ..complete(&claims[0]) }]).await.unwrap();
    store.settle(&[complete(&claims[1])]).await.unwrap();
    let claims = store.claim(0, 1, MINUTE).await.unwrap().claims;
    store.settle(&[complete(&claims[0])]).await.unwrap();
    (bench, gate, store)
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_what_the_same_worker_gets_next() {
    let (mut bench, gate, store) = behind_a_gate().await;
    gate.shut();
    assert!(store.claim(0, 2, MINUTE).await.is_err(), "the answer did not come");
    assert_eq!(bench.ask("SELECT count(*) FROM jobs WHERE status = 'running'").await, "2", "though it was carried out");
    let other = store.claim(1, 2, MINUTE).await.unwrap().claims;
    assert_eq!(other.iter().map(|claim| claim.job.0).collect::<Vec<_>>(), [6, 7], "another worker's claim is another");
    let again = store.claim(0, 2, MINUTE).await.unwrap().claims;
    let seen: Vec<(u64, u32)> = again.iter().map(|claim| (claim.job.0, claim.memory.attempt())).collect();
    assert_eq!(seen, [(4, 1), (5, 1)], "no retry is spent");
    assert_eq!(store.settle(&[complete(&again[0]), complete(&again[1])]).await.unwrap().settled.len(), 2);
    assert_eq!(bench.job(5).await, "completed 0");
    assert_eq!(store.claim(0, 2, MINUTE).await.unwrap().claims[0].job.0, 8, "and only once");
}

#[tokio::test]
async fn a_settlement_whose_answer_was_lost_is_sent_again_and_carried_out_once() {
    let discard = How::Discard { why: Why::Exhausted, reason: "status-503".into() };
    let retry = How::Retry { after: Duration::from_secs(60), reason: "status-503".into() };
    for how in [How::Complete, retry, discard, How::Release] {
        for whole in [true, false] {
            let (mut bench, gate, store) = behind_a_gate().await;
            let claims = store.claim(0, 2, MINUTE).await.unwrap().claims;
            let batch: Vec<Settlement> = claims
                .iter()
                .take(1 + usize::from(whole))
                .map(|claim| Settlement { how: how.clone(), ..complete(claim) })
                .collect();
            gate.shut();
            assert!(store.settle(&batch).await.is_err(), "the answer did not come");
            let rows = bench.ask("SELECT array_agg(jobs ORDER BY id) FROM jobs").await;
            let again = eventually("a new connection", async || store.settle(&batch).await.ok()).await;
            assert_eq!((again.settled.len(), again.lost.len()), (batch.len(), 0), "{batch:?}");
            assert_eq!(bench.ask("SELECT array_agg(jobs ORDER BY id) FROM jobs").await, rows, "{batch:?}");
        }
    }
}
