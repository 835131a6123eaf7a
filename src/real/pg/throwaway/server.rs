//! initdb and postgres as children of the guard.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::Error;
use super::binaries;
use super::directory::Directory;
use super::guard::Lifeline;
use super::protocol::Spec;
use super::settings;
use crate::scenario::chaos::Restart;

const INITDB_LIMIT: Duration = Duration::from_secs(300);
const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(2);
/// How often a server whose predecessor was killed is started: the last of the old one's processes may hold its memory for a moment.
const RESTARTS: u32 = 100;
const RESTART_PAUSE: Duration = Duration::from_millis(50);

/// A running postmaster. Killed if dropped; its children notice.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pid: u32,
}

/// What interrupts the way up: an error, or that nobody wants the server any more.
#[derive(Debug)]
pub(super) enum Halt {
    Cut,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

/// Makes a data directory with initdb.
pub(super) async fn initdb(spec: &Spec, directory: &Directory, lifeline: &mut Lifeline) -> Result<(), Halt> {
    let mut command = command(spec, "initdb", directory)?;
    command.args(settings::initdb(spec.major)).arg("-D").arg(directory.data());
    let mut child = spawn(command, "initdb", spec)?;
    let status = tokio::select! {
        status = timeout(INITDB_LIMIT, child.wait()) => status,
        () = lifeline.cut() => {
            // Asked, it ends its own child first, and then nobody writes to the directory any more.
            end(&mut child, Signal::TERM).await;
            return Err(Halt::Cut);
        }
    };
    match status {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(failed(format!("initdb ended with {status}"), directory)),
        Ok(Err(error)) => Err(failed(format!("initdb is out of sight: {error}"), directory)),
        Err(_) => {
            end(&mut child, Signal::TERM).await;
            Err(failed(format!("initdb took longer than {} s", INITDB_LIMIT.as_secs()), directory))
        }
    }
}

impl Server {
    /// Starts postgres and waits until it takes connections.
    pub(super) async fn start(spec: &Spec, directory: &Directory, lifeline: &mut Lifeline) -> Result<Server, Halt> {
        let mut command = command(spec, "postgres", directory)?;
        command.arg("-D").arg(directory.data()).arg("-k").arg(directory.path()).arg("-p").arg(settings::PORT.to_string());
        for (name, value) in settings::server(spec.durable) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = spawn(command, "postgres", spec)?;
        let pid = child.id().expect("a child that nobody waited for has its pid");
        let mut server = Server { child, pid };
        let limit = Instant::now() + START_LIMIT;
        while !is_ready(directory, pid) {
            tokio::select! {
                status = server.wait() => return Err(failed(format!("postgres ended with {status}"), directory)),
                () = lifeline.cut() => {
                    server.stop().await;
                    return Err(Halt::Cut);
                }
                () = sleep(POLL) => {}
            }
            if Instant::now() > limit {
                server.stop().await;
                return Err(failed(format!("postgres was not ready after {} s", START_LIMIT.as_secs()), directory));
            }
        }
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// How the server ended, when it does.
    pub(super) async fn wait(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => format!("its end out of sight ({error})"),
        }
    }

    /// Stops it like this, and starts another on the same data.
    pub(super) async fn restart(
        mut self,
        how: Restart,
        spec: &Spec,
        directory: &Directory,
        lifeline: &mut Lifeline,
    ) -> Result<Server, Halt> {
        let signal = match how {
            Restart::Fast => Signal::INT,
            Restart::Immediate => Signal::QUIT,
            Restart::Kill => Signal::KILL,
        };
        end(&mut self.child, signal).await;
        let mut tries = 0;
        loop {
            tries += 1;
            match Server::start(spec, directory, lifeline).await {
                Err(Halt::Failed(_)) if tries < RESTARTS => sleep(RESTART_PAUSE).await,
                started => return started,
            }
        }
    }

    /// Stops it at once, without a last checkpoint: nobody will read the data.
    pub(super) async fn stop(&mut self) {
        end(&mut self.child, Signal::QUIT).await;
    }
}

/// The postmaster writes its state into the last line of its pid file, whose first line is its pid: a server that was killed leaves
/// its own behind.
fn is_ready(directory: &Directory, pid: u32) -> bool {
    let file = std::fs::read_to_string(directory.data().join("postmaster.pid")).unwrap_or_default();
    let line = |n: usize| file.lines().nth(n).map(str::trim);
    line(0) == Some(&pid.to_string()) && line(7) == Some("ready")
}

async fn end(child: &mut Child, signal: Signal) {
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    if let Some(pid) = pid {
        let _gone = kill_process(pid, signal);
    }
    if timeout(STOP_LIMIT, child.wait()).await.is_err() {
        let _gone = child.kill().await;
    }
}

fn command(spec: &Spec, program: &str, directory: &Directory) -> Result<Command, Error> {
    let mut command = binaries::command(spec.bin.join(program), directory.path(), spec.user.as_ref());
    let log = directory.open_log()?;
    let copy = log.try_clone().map_err(Error::file("share", Path::new("server.log")))?;
    command.stdout(Stdio::from(log)).stderr(Stdio::from(copy));
    let mut command = Command::from(command);
    command.kill_on_drop(true);
    Ok(command)
}

fn spawn(mut command: Command, program: &str, spec: &Spec) -> Result<Child, Error> {
    command.spawn().map_err(|error| {
        let user = spec.user.as_ref().map_or(String::new(), |user| format!(" as user {}", user.name));
        Error::Start(format!("{} cannot be run{user}: {error}", spec.bin.join(program).display()))
    })
}

fn failed(what: String, directory: &Directory) -> Halt {
    let tail = directory.log_tail();
    Halt::Failed(Error::Start(if tail.is_empty() { what } else { format!("{what}: {tail}") }))
}
