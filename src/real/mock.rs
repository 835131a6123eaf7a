//! The door around the downstream model: a real HTTP/1.1 service on loopback.
//!
//! It has a thread and a runtime of its own, so that busy workers do not make it late. A request is handed to the model the moment
//! its body is there; the lock is held for that only. `refuse` closes the listener *and* cuts live connections, since a
//! kept-alive connection would go on working; a second socket that never listens keeps the port reserved meanwhile.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bytes::Bytes;
use hdrhistogram::Histogram;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::RETRY_AFTER;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};

use super::clock::Clock;
use super::http::{ATTEMPT_HEADER, JOB_HEADER};
use crate::call::{Call, Outcome, Reply};
use crate::downstream::{Downstream, Mode};
use crate::job::JobId;
use crate::journal;
use crate::metrics::{histogram, record};
use crate::time::{Instant, Window};

/// The largest request body that is read, in bytes.
const LARGEST_BODY: usize = 64 * 1024;

/// A running service.
#[derive(Debug)]
pub struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    downstream: Downstream,
    arrivals: u64,
    lateness: Histogram<u64>,
}

impl Mock {
    /// Starts serving `downstream` on a free port of 127.0.0.1; its outages follow `clock`. `refusals` are the windows of mode
    /// `refuse`.
    ///
    /// # Errors
    /// If no port or thread is to be had.
    pub fn start(downstream: Downstream, refusals: Vec<Window>, clock: Clock) -> io::Result<Mock> {
        let state = State { downstream, arrivals: 0, lateness: histogram() };
        let shared = Arc::new(Shared { clock, state: Mutex::new(state) });
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (door, listener) = {
            let _inside = runtime.enter();
            Door::open()?
        };
        let address = door.address;
        let serving = shared.clone();
        let thread = std::thread::Builder::new().name("downstream".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(serving, door, listener, refusals) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Mock { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that reached it so far.
    pub fn arrivals(&self) -> u64 {
        self.shared.state.lock().expect("nobody panics while holding it").arrivals
    }

    /// Stops serving; returns how many requests arrived, and by how much answers left later than the model said.
    pub fn stop(mut self) -> (u64, Histogram<u64>) {
        self.shut();
        let state = self.shared.state.lock().expect("nobody panics while holding it");
        (state.arrivals, state.lateness.clone())
    }

    fn shut(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the service does not panic");
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shut();
    }
}

/// A port of our own, and the right to listen on it.
#[derive(Debug)]
struct Door {
    address: SocketAddr,
    _reserved: TcpSocket,
}

impl Door {
    fn open() -> io::Result<(Door, TcpListener)> {
        let reserved = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let door = Door { address: reserved.local_addr()?, _reserved: reserved };
        let listener = door.listen()?;
        Ok((door, listener))
    }

    fn listen(&self) -> io::Result<TcpListener> {
        socket(self.address)?.listen(4096)
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Listens, but for the windows in which it refuses.
async fn serve(shared: Arc<Shared>, door: Door, listener: TcpListener, refusals: Vec<Window>) {
    let mut listener = Some(listener);
    for window in refusals.iter().copied().chain([Window { from: Instant::FAR, until: Instant::FAR }]) {
        let open = match listener.take() {
            Some(listener) => listener,
            None => door.listen().expect("the port has been reserved all the while"),
        };
        let (cut, uncut) = watch::channel(());
        tokio::select! {
            () = accept(&shared, &open, &uncut) => {}
            () = shared.clock.sleep_until(window.from) => {}
        }
        drop(open);
        drop(cut);
        shared.clock.sleep_until(window.until).await;
    }
}

async fn accept(shared: &Arc<Shared>, listener: &TcpListener, uncut: &watch::Receiver<()>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(shared.clone(), stream, uncut.clone()));
            }
            // Out of files, or the caller is gone: the next accept may do better, and other tasks must run meanwhile.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Serves one connection until it ends or is cut.
async fn converse(shared: Arc<Shared>, stream: TcpStream, mut uncut: watch::Receiver<()>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(&shared, request));
    let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = connection => {}
        _ = uncut.changed() => {}
    }
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let number = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let (job, attempt) = (number(JOB_HEADER), number(ATTEMPT_HEADER));
    let Ok(body) = Limited::new(request.into_body(), LARGEST_BODY).collect().await else {
        return Ok(response(&Outcome::status(413)));
    };
    let body = body.to_bytes();
    let (reply, now) = shared.admit(job, attempt, &body);
    match reply {
        Reply::Answer { outcome, at } => {
            shared.clock.sleep_until(at).await;
            shared.note_lateness(at.max(now));
            Ok(response(&outcome))
        }
        // A refusal that reaches this place raced with the window's edge; the connection is about to be cut.
        Reply::Silence | Reply::Refuse => std::future::pending().await,
    }
}

impl Shared {
    fn admit(&self, job: Option<u64>, attempt: Option<u64>, body: &[u8]) -> (Reply, Instant) {
        let mut state = self.state.lock().expect("nobody panics while holding it");
        state.arrivals += 1;
        let job = JobId(job.unwrap_or(state.arrivals));
        let attempt = attempt.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
        let call = Call::new(job, attempt, std::str::from_utf8(body).unwrap_or(""));
        // Under the lock, so that arrivals come in order of time.
        let now = self.clock.now();
        (journal::admit(&mut state.downstream, now, &call, &mut ()), now)
    }

    fn note_lateness(&self, meant: Instant) {
        let late = self.clock.now().since(meant);
        record(&mut self.state.lock().expect("nobody panics while holding it").lateness, late);
    }
}

fn response(outcome: &Outcome) -> Response<Full<Bytes>> {
    let builder = Response::builder();
    let builder = match *outcome {
        Outcome::Status { code, retry_after } => {
            let builder = builder.status(code);
            match retry_after {
                // Whole seconds are all that the header can say: rounded up, so that nobody comes back too early.
                Some(after) => builder.header(RETRY_AFTER, after.as_secs() + u64::from(after.subsec_nanos() > 0)),
                None => builder,
            }
        }
        _ => builder.status(200),
    };
    let body = match *outcome {
        Outcome::Ok => Bytes::from_static(b"{\"ok\":true}"),
        _ => Bytes::from_static(b"{\"ok\":false}"),
    };
    builder.body(Full::new(body)).expect("status and header come from the model, which makes valid ones")
}

/// The windows in which a downstream refuses connections.
pub fn refusals(outages: &[crate::downstream::Outage]) -> Vec<Window> {
    outages.iter().filter(|outage| outage.mode == Mode::Refuse).map(|outage| outage.window).collect()
}
