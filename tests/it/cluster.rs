//! One throwaway server for the whole suite, and a fresh database for whoever asks.
//!
//! `SIMQ_TEST_DATABASE_URL` names another server to use; the databases that the suite makes there stay.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;

use simq::real::pg::throwaway::{Options, Throwaway};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

const ROOM: u64 = 1 << 30;

/// The suite's server. It stops when the test process ends, however it ends.
#[derive(Debug)]
pub struct Cluster {
    /// How to connect to its database `postgres`.
    pub options: PgConnectOptions,
}

/// The suite's server, started by whoever asks first.
pub fn server() -> &'static Cluster {
    static SERVER: OnceLock<Cluster> = OnceLock::new();
    SERVER.get_or_init(|| match std::env::var("SIMQ_TEST_DATABASE_URL") {
        Ok(url) => Cluster { options: PgConnectOptions::from_str(&url).unwrap() },
        Err(_) => Cluster { options: start() },
    })
}

/// A new, empty database.
pub async fn database() -> PgConnectOptions {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let options = tokio::task::spawn_blocking(|| server().options.clone()).await.unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let name = format!("simq_test_{now}_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    // Much faster than through the log; the word is new in 15.
    let fast = if connection.server_version_num().is_some_and(|version| version >= 150_000) { "STRATEGY file_copy" } else { "" };
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE template0 {fast}")))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    options.database(&name)
}

/// Memory if there is room, since a database is hundreds of files; else the temporary directory.
pub fn fast_place() -> PathBuf {
    let shm = Path::new("/dev/shm");
    let room = rustix::fs::statvfs(shm).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) >= ROOM);
    let writable = rustix::fs::access(shm, rustix::fs::Access::WRITE_OK).is_ok();
    if room && writable { shm.to_owned() } else { std::env::temp_dir() }
}

/// On a thread with a runtime of its own, which no test can end.
fn start() -> PgConnectOptions {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let guard = PathBuf::from(env!("CARGO_BIN_EXE_simq"));
            let options = Options { guard: Some(guard), parent: Some(fast_place()), ..Options::default() };
            let mut server = Throwaway::start(options).await.unwrap();
            sender.send(server.connect_options()).unwrap();
            eprintln!("{}", server.ended().await);
        });
    });
    receiver.recv().expect("the throwaway server starts")
}

#[tokio::test]
async fn every_database_is_new_and_empty() {
    for _ in 0..2 {
        let mut connection = PgConnection::connect_with(&database().await).await.unwrap();
        sqlx::query("CREATE TABLE mine (id int)").execute(&mut connection).await.unwrap();
    }
}
