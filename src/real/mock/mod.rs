//! The door around the downstream model: a real HTTP/1.1 service.
//!
//! ```text
//!  door        a port of our own: listens, and for `refuse` does not
//!  connection  one caller's connection: bounds, and endings that HTTP does not know (reset, truncated, garbage)
//!  exchange    one request: to the model, and its reply as a response
//!  state       what is known at each moment: the model, the counts
//!  log         a CSV line per request, if asked for
//!  admin       a second port: state, faults, the timeline, metrics
//! ```
//! It has a thread and a runtime of its own, so that busy workers do not make it late. A request is handed to the model the moment
//! its body is there; the lock is held for that only. `refuse` closes the listener *and* cuts live connections, since a
//! kept-alive connection would go on working; a second socket that never listens keeps the port reserved meanwhile.

mod admin;
mod connection;
mod door;
mod exchange;
mod exposition;
mod log;
mod state;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use hdrhistogram::Histogram;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::clock::Clock;
use crate::downstream::Downstream;
use crate::metrics::Service;
use door::Door;
use log::Log;
use state::Shared;

/// A running service.
#[derive(Debug)]
pub struct Mock {
    address: SocketAddr,
    admin: Option<SocketAddr>,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How a service is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where its admin API listens; `None`: it has none.
    pub admin: Option<SocketAddr>,
    /// The timeline starts at the first request, not at once.
    pub on_first_request: bool,
    /// Where to log requests.
    pub log: Option<PathBuf>,
    /// Keep a record of each call, for the figures of a run; grows with the calls.
    pub keep: bool,
}

impl Setup {
    /// A service on a free port of 127.0.0.1 that keeps a record of each call.
    pub fn of_a_run() -> Setup {
        Setup { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), admin: None, on_first_request: false, log: None, keep: true }
    }
}

/// What a service knows of its own conduct.
#[derive(Debug)]
pub struct Conduct {
    /// Requests that arrived.
    pub arrivals: u64,
    /// By how much answers left later than the model said, in microseconds.
    pub lateness: Histogram<u64>,
    /// Every call in the order of arrival, if they were to be kept.
    pub services: Vec<Service>,
}

impl Mock {
    /// Starts serving `downstream`, whose timeline follows `clock`.
    ///
    /// # Errors
    /// If no port, file or thread is to be had.
    pub fn start(downstream: Downstream, clock: Clock, setup: &Setup) -> io::Result<Mock> {
        let log = setup.log.as_deref().map(Log::create).transpose()?;
        let shared = Arc::new(Shared::new(downstream, clock, setup, log));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let opened = {
            let _inside = runtime.enter();
            open(setup, &shared)
        };
        let (door, listener, admin) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // Whoever calls may be in a runtime of its own, where another can't be waited for.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let (address, admin_address) = (door.address(), admin.as_ref().map(|(door, _)| door.address()));
        let serving = shared.clone();
        let thread = std::thread::Builder::new().name("downstream".into()).spawn(move || {
            runtime.block_on(async {
                let hand = admin::serve(serving.clone(), admin);
                tokio::select! {
                    () = door::serve(serving.clone(), door, listener) => {}
                    () = serving.usher() => {}
                    () = hand => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Mock { address, admin: admin_address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its admin API listens, if it has one.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Requests that reached it so far.
    pub fn arrivals(&self) -> u64 {
        self.shared.lock().arrivals
    }

    /// Stops serving; returns what it knows of its own conduct.
    pub fn stop(mut self) -> Conduct {
        self.shut();
        let mut state = self.shared.lock();
        Conduct { arrivals: state.arrivals, lateness: state.lateness.clone(), services: std::mem::take(&mut state.services.0) }
    }

    fn shut(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the service does not panic");
        }
        self.shared.close_log();
    }
}

type Opened = (Door, Option<TcpListener>, Option<(Door, TcpListener)>);

/// Takes the ports. One that refuses from the start must not be reached at all, so it does not listen yet.
fn open(setup: &Setup, shared: &Shared) -> io::Result<Opened> {
    let door = Door::reserve(setup.listen)?;
    let listener = if shared.refuses().0 { None } else { Some(door.listen()?) };
    Ok((door, listener, setup.admin.map(Door::open).transpose()?))
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.shut();
    }
}
