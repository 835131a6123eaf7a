//! One caller's connection: what it may ask for at most, and the endings that HTTP does not know.
//!
//! A wild client can't exhaust the service: connections are counted ([`super::door`]), a head must come within half a minute, in
//! 64 KiB and 100 lines, a body within ten seconds and in 64 KiB. Pipelined requests are answered one after another.

use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

use super::exchange::answer;
use super::state::Shared;
use crate::call::Label;

/// How long the head of a request may take, and how long a kept-alive connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// The largest head, in bytes, and the most lines in it.
const LARGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 100;
/// How long a caller may take to read an ending.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// How a connection ends other than by HTTP's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a reset.
    Reset,
    /// With an answer that breaks off.
    Truncated,
    /// With bytes that are not HTTP.
    Garbage,
}

/// The head of an answer of eleven bytes, and six of them.
const TRUNCATED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"ok\":";
/// What a broken proxy may send.
const GARBAGE: &[u8] = b"\x16\x03\x01\x7f\xfe\x00garbage, not HTTP\r\n\x00\xff\xff\r\n\r\n";
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 21\r\n\r\ntoo many connections\n";

/// A connection as its requests know it.
#[derive(Debug)]
pub(super) struct Line {
    /// Who is at the other end, where no header says so.
    pub(super) peer: Label,
    ending: Mutex<Option<oneshot::Sender<Ending>>>,
}

impl Line {
    /// Ends the connection so; the request that asks for it gets no other answer.
    pub(super) async fn end(&self, ending: Ending) -> ! {
        if let Some(sender) = self.ending.lock().expect("nobody panics while holding it").take() {
            let _ = sender.send(ending);
        }
        std::future::pending::<std::convert::Infallible>().await;
        unreachable!("the connection is gone, and with it this request")
    }
}

/// Serves one connection until it ends or is cut.
pub(super) async fn converse(shared: Arc<Shared>, stream: TcpStream, peer: IpAddr, mut uncut: watch::Receiver<()>) {
    let _ = stream.set_nodelay(true);
    let (sender, ended) = oneshot::channel();
    let line = Arc::new(Line { peer: Label::of(&peer.to_string()), ending: Mutex::new(Some(sender)) });
    let _open = shared.open();
    let service = service_fn(|request| answer(shared.clone(), line.clone(), request));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let ending = tokio::select! {
        _ = &mut connection => return,
        _ = uncut.changed() => return,
        Ok(ending) = ended => ending,
    };
    let mut stream = connection.into_parts().io.into_inner();
    match ending {
        Ending::Reset => {
            let _ = stream.set_zero_linger();
        }
        Ending::Truncated => within(last_words(&mut stream, TRUNCATED)).await,
        Ending::Garbage => within(last_words(&mut stream, GARBAGE)).await,
    }
}

async fn last_words(stream: &mut TcpStream, words: &[u8]) {
    let _ = stream.write_all(words).await;
    let _ = stream.shutdown().await;
}

async fn within(words: impl Future<Output = ()>) {
    let _ = tokio::time::timeout(READ_WITHIN, words).await;
}

/// Tells a caller for whom there is no room, without waiting for it.
pub(super) fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(TOO_MANY);
}
