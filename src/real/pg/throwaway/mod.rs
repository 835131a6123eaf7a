//! A Postgres of our own, for the length of one process: found or fetched, set up, started, watched, stopped, removed.
//!
//! It listens on a unix socket in a private directory and nowhere else, trusts whoever can open that directory, and never
//! outlives the process that started it: see [`guard`]. Knows nothing of jobs.
//!
//! | file | answers |
//! |---|---|
//! | `discover.rs`, `binaries.rs` | which server binaries? |
//! | `fetch.rs`, `cache.rs` | where from, if there are none? |
//! | `user.rs` | who runs them? |
//! | `settings.rs` | with which settings? |
//! | `guard.rs`, `protocol.rs`, `server.rs` | who owns the server, and how does it end? |
//! | `directory.rs`, `template.rs` | where is its data, and why does it not take a second to make? |
//! | `reap.rs` | who cleans up after a guard that was killed? |
//!
//! Environment: `SIMQ_PG_BIN` (use the binaries in this folder), `SIMQ_PG_SYSTEM=0` (pass the system's over),
//! `SIMQ_PG_FETCH=0` (fetch nothing), `SIMQ_PG_DIR` (make the server's directory in here), `SIMQ_CACHE_DIR`.

mod binaries;
mod cache;
mod directory;
mod discover;
mod error;
mod fetch;
mod guard;
mod protocol;
mod reap;
mod server;
mod settings;
mod template;
mod user;

use std::env;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use cache::Cache;
use protocol::{Ready, Report, Spec, Wish};

use crate::scenario::chaos::Restart;

pub use binaries::{Binaries, Source};
pub use error::Error;
pub use fetch::Say;
pub use guard::guard;
pub use protocol::Template;
pub use settings::server as server_settings;

const STOP_LIMIT: Duration = Duration::from_secs(30);
const CONNECT_TRIES: u32 = 400;
const CONNECT_PAUSE: Duration = Duration::from_millis(5);

/// How to start a throwaway server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Commits survive a crash of the operating system too. Slower by what the disk takes to sync.
    pub durable: bool,
    /// The simq executable, which runs the guard; the running executable if `None`.
    pub guard: Option<PathBuf>,
    /// Where to make the server's directory; `SIMQ_PG_DIR`, else the system's temporary directory if `None`.
    pub parent: Option<PathBuf>,
    /// Told before anything is fetched; on stderr if `None`.
    pub say: Option<Say>,
}

/// How a start went.
#[derive(Clone, Debug)]
pub struct Startup {
    /// The server binaries.
    pub binaries: Binaries,
    /// Where the data directory came from.
    pub template: Template,
    /// Finding the binaries, and fetching them if it came to that.
    pub find: Duration,
    /// Making the data directory.
    pub prepare: Duration,
    /// From the start of the server until it takes connections.
    pub start: Duration,
    /// From the call until the first query was answered.
    pub total: Duration,
}

/// Lets others restart a throwaway server, and keeps it from stopping by nothing.
#[derive(Clone, Debug)]
pub struct Restarter(Weak<Mutex<Option<ChildStdin>>>);

/// A running throwaway server. Dropped, it begins to stop; [`Throwaway::stop`] also waits for the end.
#[derive(Debug)]
pub struct Throwaway {
    guard: Child,
    /// Closing it tells the guard to stop. No other child inherits it: the standard library opens pipes close-on-exec.
    pipe: Arc<Mutex<Option<ChildStdin>>>,
    reports: Lines<BufReader<ChildStdout>>,
    spec: Spec,
    ready: Ready,
    startup: Startup,
}

impl Throwaway {
    /// Finds server binaries, starts a server under a guard, and waits until it has answered a query.
    ///
    /// # Errors
    /// If there is no server to be found, or it does not start. Nothing is left running or lying about.
    pub async fn start(options: Options) -> Result<Throwaway, Error> {
        let began = Instant::now();
        if env::var_os("PGOPTIONS").is_some_and(|value| !value.is_empty()) {
            return Err(Error::PgOptions);
        }
        let exe = guard_exe(&options)?;
        let (spec, binaries) =
            spawn_blocking(move || plan(&options)).await.expect("looking for binaries neither panics nor is cancelled")?;
        let find = began.elapsed();
        let (guard, pipe, mut reports) = launch(&exe, &spec).await.map_err(|source| Error::Guard { exe, source })?;
        let ready = match next(&mut reports).await {
            Some(Report::Ready(ready)) => ready,
            Some(Report::Failed(why)) => return Err(Error::Start(why)),
            Some(Report::Ended(why)) => return Err(Error::Ended(why)),
            None => return Err(Error::Start("its guard process ended without a word".to_owned())),
        };
        let (prepare, start) = (ready.prepare, ready.start);
        let startup = Startup { binaries, template: ready.template, find, prepare, start, total: Duration::ZERO };
        let pipe = Arc::new(Mutex::new(Some(pipe)));
        let mut throwaway = Throwaway { guard, pipe, reports, spec, ready, startup };
        throwaway.greet().await?;
        throwaway.startup.total = began.elapsed();
        Ok(throwaway)
    }

    /// How to connect, whatever `PG*` variables say.
    pub fn connect_options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.ready.directory)
            .port(settings::PORT)
            .username(settings::USER)
            .database("postgres")
            .ssl_mode(PgSslMode::Disable)
    }

    /// The same as a URL, for other processes of this user; libpq and sqlx understand it.
    pub fn url(&self) -> String {
        let host = escape(&self.ready.directory.to_string_lossy());
        format!("postgres://{}@{host}:{}/postgres?sslmode=disable", settings::USER, settings::PORT)
    }

    /// How the start went.
    pub fn startup(&self) -> &Startup {
        &self.startup
    }

    /// A handle to restart it by.
    pub fn restarter(&self) -> Restarter {
        Restarter(Arc::downgrade(&self.pipe))
    }

    /// The first postmaster's process.
    pub fn server_pid(&self) -> u32 {
        self.ready.pid
    }

    /// Returns if the server goes away by itself, and says why. Watch it, or a killed server leaves its clients waiting.
    /// Cancel safe.
    pub async fn ended(&mut self) -> Error {
        match next(&mut self.reports).await {
            Some(Report::Ended(why) | Report::Failed(why)) => Error::Ended(why),
            Some(Report::Ready(_)) | None => {
                let spec = self.spec.clone();
                let _best_effort = spawn_blocking(move || reap::stale(&spec.parents, spec.user.as_ref())).await;
                Error::Ended("its guard process was killed".to_owned())
            }
        }
    }

    /// Stops the server and waits until it is gone and its directory deleted.
    ///
    /// # Errors
    /// If the guard does not end in time; it goes on trying.
    pub async fn stop(self) -> Result<(), Error> {
        let Throwaway { mut guard, pipe, .. } = self;
        drop(pipe.lock().await.take());
        let ended = timeout(STOP_LIMIT, guard.wait()).await;
        ended.map(|_| ()).map_err(|_| Error::Ended(format!("it did not stop within {} s", STOP_LIMIT.as_secs())))
    }

    /// The first query. The pid file said that the server is ready; a busy machine may need a moment more.
    async fn greet(&mut self) -> Result<(), Error> {
        let options = self.connect_options();
        let mut tries = 0;
        loop {
            tries += 1;
            tokio::select! {
                hello = hello(&options) => match hello {
                    Ok(()) => return Ok(()),
                    Err(error) if tries == CONNECT_TRIES => return Err(Error::Connect(error)),
                    Err(_) => sleep(CONNECT_PAUSE).await,
                },
                ended = self.ended() => return Err(ended),
            }
        }
    }
}

impl Restarter {
    /// Asks for a restart, and does not wait for it. That the server is back shows in its `pg_postmaster_start_time()`; if it does not
    /// come back, [`Throwaway::ended`] says why.
    ///
    /// # Errors
    /// If the server's guard is gone.
    pub async fn restart(&self, how: Restart) -> std::io::Result<()> {
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let pipe = self.0.upgrade().ok_or_else(gone)?;
        let mut pipe = pipe.lock().await;
        let wish = serde_json::to_string(&Wish::Restart(how))?;
        pipe.as_mut().ok_or_else(gone)?.write_all(format!("{wish}\n").as_bytes()).await
    }
}

async fn hello(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    connection.ping().await?;
    connection.close().await
}

fn guard_exe(options: &Options) -> Result<PathBuf, Error> {
    match &options.guard {
        Some(exe) => Ok(exe.clone()),
        None => env::current_exe().map_err(|source| Error::Guard { exe: "simq".into(), source }),
    }
}

/// Everything that the guard has to know. Blocks: it runs programs, and may fetch some.
fn plan(options: &Options) -> Result<(Spec, Binaries), Error> {
    let user = user::for_server()?;
    let cache = Cache::open();
    let say = options.say.unwrap_or(|line| {
        // Nobody may be there to hear it.
        let _unheard = writeln!(std::io::stderr(), "{line}");
    });
    let binaries = discover::Search::from_env().run(user.as_ref(), cache.as_ref(), say)?;
    let template = cache.map(|cache| cache.template(&binaries.bin, &binaries.version, &settings::initdb(binaries.major)));
    let bin = binaries.bin.clone();
    let parents = parents(options);
    Ok((Spec { bin, major: binaries.major, parents, template, user, durable: options.durable }, binaries))
}

/// Where the server's directory may be, best place first. The last is for long paths and closed folders.
fn parents(options: &Options) -> Vec<PathBuf> {
    let named = options.parent.clone().or_else(|| env::var_os("SIMQ_PG_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from));
    let mut parents = vec![named.unwrap_or_else(env::temp_dir)];
    parents.push(PathBuf::from("/tmp"));
    parents.dedup();
    parents
}

async fn launch(exe: &PathBuf, spec: &Spec) -> std::io::Result<(Child, ChildStdin, Lines<BufReader<ChildStdout>>)> {
    let mut command = Command::new(exe);
    command.arg("postgres-guard").process_group(0);
    // Its stderr is not ours: a pipe that it held open would keep `simq | tee` from ending.
    let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut pipe = guard.stdin.take().expect("it is piped");
    let out = guard.stdout.take().expect("it is piped");
    let line = serde_json::to_string(spec)?;
    pipe.write_all(format!("{line}\n").as_bytes()).await?;
    Ok((guard, pipe, BufReader::new(out).lines()))
}

/// The guard's next word; `None` if it is gone.
async fn next(reports: &mut Lines<BufReader<ChildStdout>>) -> Option<Report> {
    let line = reports.next_line().await.ok()??;
    serde_json::from_str(&line).ok()
}

/// Percent-encodes all but letters and digits.
fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}
