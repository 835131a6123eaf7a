//! A port of our own: listens, and in the windows of `refuse` does not.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};

use super::connection::{converse, turn_away};
use super::state::Shared;
use crate::time::Instant;

/// The most connections at once, where the system allows so many open files.
const CONNECTIONS: usize = 10_000;
/// Files that are left for everything else.
const OTHER_FILES: usize = 100;
/// The pause after an accept that failed because files ran out.
const PAUSE: Duration = Duration::from_millis(10);

/// A port of our own, and the right to listen on it.
#[derive(Debug)]
pub(super) struct Door {
    address: SocketAddr,
    _reserved: TcpSocket,
}

impl Door {
    /// Reserves the port, and listens on it.
    pub(super) fn open(address: SocketAddr) -> io::Result<(Door, TcpListener)> {
        let door = Door::reserve(address)?;
        let listener = door.listen()?;
        Ok((door, listener))
    }

    /// Reserves the port.
    pub(super) fn reserve(address: SocketAddr) -> io::Result<Door> {
        if address.port() != 0 {
            // Two sockets may share a port with our options, so one of somebody else's with the same ones would be missed.
            drop(std::net::TcpListener::bind(address)?);
        }
        let reserved = socket(address)?;
        Ok(Door { address: reserved.local_addr()?, _reserved: reserved })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        socket(self.address)?.listen(4096)
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// How many connections there may be at once.
fn most_connections() -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let files = files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    CONNECTIONS.min(files.saturating_sub(OTHER_FILES)).max(1)
}

/// Listens, but for the windows in which it refuses.
pub(super) async fn serve(shared: Arc<Shared>, door: Door, mut listener: Option<TcpListener>) {
    let room = Arc::new(Semaphore::new(most_connections()));
    let (mut cut, mut uncut) = watch::channel(());
    loop {
        let (refuses, change) = shared.refuses();
        let changes = async {
            tokio::select! {
                () = shared.changed.notified() => {}
                () = shared.clock.sleep_until(change.unwrap_or(Instant::FAR)) => {}
            }
        };
        if refuses {
            listener = None;
            drop(cut);
            (cut, uncut) = watch::channel(());
            changes.await;
            continue;
        }
        let open = listener.get_or_insert_with(|| door.listen().expect("the port has been reserved all the while"));
        tokio::select! {
            () = accept(&shared, open, &uncut, &room) => {}
            () = changes => {}
        }
    }
}

async fn accept(shared: &Arc<Shared>, listener: &TcpListener, uncut: &watch::Receiver<()>, room: &Arc<Semaphore>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match room.clone().try_acquire_owned() {
                Ok(place) => {
                    let (shared, uncut) = (shared.clone(), uncut.clone());
                    tokio::spawn(async move {
                        converse(shared, stream, peer.ip(), uncut).await;
                        drop(place);
                    });
                }
                Err(_) => {
                    shared.lock().connections_turned_away += 1;
                    turn_away(&stream);
                }
            },
            // Out of files, or the caller is gone: the next accept may do better, and other tasks must run meanwhile.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
