//! A proxy in front of the suite's server that reads what its clients say, and can stop or cut them at a chosen statement.
//!
//! The server is reached by a socket of the file system; the proxy listens on a port of 127.0.0.1. sqlx names each statement it
//! prepares: the proxy remembers by a word of its text which it is, and acts when the statement is *executed*, before the server has seen that, or
//! when the server has answered, and so has committed, but the client does not know yet.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::mpsc;

use crate::cluster;

/// Far beyond what anything here takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What a statement says that claims.
pub const CLAIM: &[&str] = &["INSERT INTO lease"];
/// What a statement says that settles, job by job or whole batches.
pub const SETTLE: &[&str] =
    &["(client, number, lost)", "AS s (batch, job, delay_ns, failure)", "kept AS (\n    INSERT INTO finished"];
/// What a statement says that puts jobs in.
pub const INSERT: &[&str] = &["INSERT INTO ready"];

/// On which side of its commit a statement is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The server never hears of it.
    Before,
    /// The server has carried it out, and nobody hears of that.
    After,
}

/// What is done to a statement that is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Its connection breaks.
    Cut,
    /// It goes no further, and its connection hangs.
    Hold,
}

/// A statement to strike.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Pieces of text: it has one of them.
    pub texts: &'static [&'static str],
    pub side: Side,
    pub act: Act,
    /// Which executions of it, counted from 1 over all connections.
    pub turns: Vec<u32>,
}

/// A running proxy; it ends with the test's runtime.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
    struck: mpsc::UnboundedReceiver<()>,
}

struct State {
    rule: Rule,
    seen: Mutex<u32>,
    strikes: Mutex<u32>,
    struck: mpsc::UnboundedSender<()>,
}

impl Proxy {
    pub async fn start(rule: Rule) -> Proxy {
        let socket = tokio::task::spawn_blocking(|| socket_of(&cluster::server().options)).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, struck) = mpsc::unbounded_channel();
        let state = Arc::new(State { rule, seen: Mutex::new(0), strikes: Mutex::new(0), struck: sender });
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, socket.clone(), shared.clone()));
            }
        });
        Proxy { address, state, struck }
    }

    /// The same database through the proxy.
    pub fn options(&self, database: &PgConnectOptions) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.address.port())
            .username(database.get_username())
            .database(database.get_database().unwrap())
            .ssl_mode(sqlx::postgres::PgSslMode::Disable)
    }

    /// The same as a URL, for other processes.
    pub fn url(&self, database: &PgConnectOptions) -> String {
        let (user, name) = (database.get_username(), database.get_database().unwrap());
        format!("postgres://{user}@{}/{name}?sslmode=disable", self.address)
    }

    /// How many statements have been struck.
    pub fn strikes(&self) -> u32 {
        *self.state.strikes.lock().unwrap()
    }

    /// Waits for the next strike.
    pub async fn struck(&mut self) {
        let struck = tokio::time::timeout(LIMIT, self.struck.recv()).await;
        struck.unwrap_or_else(|_| panic!("nobody executed {:?}", self.state.rule.texts)).unwrap();
    }
}

impl State {
    /// Whether this execution is to be struck.
    fn turn(&self) -> bool {
        let mut seen = self.seen.lock().unwrap();
        *seen += 1;
        self.rule.turns.contains(&seen)
    }

    fn strike(&self) {
        *self.strikes.lock().unwrap() += 1;
        // Nobody need wait for it.
        let _ = self.struck.send(());
    }
}

fn socket_of(options: &PgConnectOptions) -> PathBuf {
    let directory = options.get_socket().expect("the suite's server is reached by a socket");
    directory.join(format!(".s.PGSQL.{}", options.get_port()))
}

/// Passes everything on between a client and the server, message by message, until one of them leaves or the rule says otherwise.
async fn pass(mut client: TcpStream, socket: PathBuf, state: Arc<State>) {
    // A server that restarts refuses; so does the proxy, by closing.
    let Ok(server) = UnixStream::connect(socket).await else { return };
    client.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.into_split();
    let (muted, struck) = (AtomicBool::new(false), AtomicBool::new(false));
    let strike = || {
        struck.store(true, Ordering::Relaxed);
        state.strike();
    };
    let requests = async {
        let mut statements = BTreeMap::new();
        // The first message has no type.
        let mut first = true;
        while let Some(message) = message(&mut from_client, first).await {
            first = false;
            if executes(&message, &state.rule, &mut statements) && state.turn() {
                match state.rule.side {
                    Side::Before => {
                        strike();
                        return;
                    }
                    Side::After => muted.store(true, Ordering::Relaxed),
                }
            }
            if to_server.write_all(&message).await.is_err() {
                return;
            }
        }
    };
    let answers = async {
        while let Some(message) = message(&mut from_server, false).await {
            if muted.load(Ordering::Relaxed) {
                // "Ready for query": what was asked is done, and committed.
                if message[0] == b'Z' {
                    strike();
                    return;
                }
                continue;
            }
            if to_client.write_all(&message).await.is_err() {
                return;
            }
        }
    };
    tokio::select! { () = requests => {}, () = answers => {} }
    if state.rule.act == Act::Hold && struck.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

/// One message of the protocol, whole; `None` at the end of the stream.
async fn message(from: &mut (impl AsyncReadExt + Unpin), first: bool) -> Option<Vec<u8>> {
    let mut head = vec![0; if first { 4 } else { 5 }];
    from.read_exact(&mut head).await.ok()?;
    let at = head.len() - 4;
    let length = u32::from_be_bytes(head[at..].try_into().unwrap()) as usize;
    let mut message = head;
    message.resize(at + length, 0);
    from.read_exact(&mut message[at + 4..]).await.ok()?;
    Some(message)
}

/// Whether this message binds, and so executes, a statement that the rule means.
fn executes(message: &[u8], rule: &Rule, statements: &mut BTreeMap<Vec<u8>, bool>) -> bool {
    match message[0] {
        b'P' => {
            let (name, rest) = word(&message[5..]);
            let (text, _) = word(rest);
            let text = String::from_utf8_lossy(text);
            statements.insert(name.to_vec(), rule.texts.iter().any(|piece| text.contains(piece)));
            false
        }
        b'B' => {
            let (_portal, rest) = word(&message[5..]);
            statements.get(word(rest).0).copied().unwrap_or(false)
        }
        _ => false,
    }
}

/// Text up to its closing zero, and what follows.
fn word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (&bytes[..end], &bytes[(end + 1).min(bytes.len())..])
}
