//! The guard: a process of its own that owns one server and its directory, and outlives simq by a moment.
//!
//! simq starts it with a pipe on stdin. Whatever ends simq (a return, a panic, a signal, SIGKILL) closes the pipe, and
//! the guard stops the server and deletes the directory. It stands in its own process group, so that Ctrl-C in
//! a terminal does not hit it.
//!
//! ```text
//! simq ──stdin: spec, wishes, its end────────────► guard ──child──► initdb, then postgres
//!      ◄──stdout: Ready, then Ended or nothing────
//! ```

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::thread;
use std::time::Instant;

use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::directory::Directory;
use super::error::chain;
use super::protocol::{Ready, Report, Spec, Template, Wish, read_spec, say};
use super::server::{Halt, Server, initdb};
use super::{Error, reap, template};

/// Runs the guard: what the hidden subcommand of simq does.
///
/// # Errors
/// If stdin does not hold a specification, or the process cannot have a runtime. Whatever happens to the server is
/// told to simq on stdout.
pub fn guard() -> io::Result<()> {
    let Some(spec) = read_spec(&mut io::stdin().lock())? else { return Ok(()) };
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut lifeline = Lifeline::grab()?;
        match own(&spec, &mut lifeline).await {
            Ok(()) | Err(Halt::Cut) => {}
            Err(Halt::Failed(Error::Ended(why))) => say(&Report::Ended(why)),
            Err(Halt::Failed(Error::Start(why))) => say(&Report::Failed(why)),
            Err(Halt::Failed(error)) => say(&Report::Failed(chain(&error))),
        }
        Ok(())
    })
}

/// A server's whole life. When this returns, the server is gone and so is its directory.
async fn own(spec: &Spec, lifeline: &mut Lifeline) -> Result<(), Halt> {
    reap::stale(&spec.parents, spec.user.as_ref());
    let directory = Directory::create(&spec.parents, spec.user.as_ref())?;
    let mut server = bring_up(spec, &directory, lifeline).await?;
    loop {
        tokio::select! {
            status = server.wait() => {
                let tail = directory.log_tail();
                return Err(Error::Ended(if tail.is_empty() { status } else { format!("{status}: {tail}") }).into());
            }
            wish = lifeline.wish() => match wish {
                Some(Wish::Restart(how)) => server = server.restart(how, spec, &directory, lifeline).await?,
                None => {
                    server.stop().await;
                    let terminated = || Error::Ended("its guard got SIGTERM".to_owned());
                    return if lifeline.terminated { Err(terminated().into()) } else { Ok(()) };
                }
            },
        }
    }
}

/// From an empty directory to a server that takes connections, and says so.
async fn bring_up(spec: &Spec, directory: &Directory, lifeline: &mut Lifeline) -> Result<Server, Halt> {
    let began = Instant::now();
    let mut template = prepare(spec, directory, lifeline).await?;
    let mut prepared = Instant::now();
    let mut started = Server::start(spec, directory, lifeline).await;
    if let (Err(Halt::Failed(_)), Template::Hit, Some(spoilt)) = (&started, template, &spec.template) {
        // A crash of the system may have spoilt it, and it would fail for ever.
        template::forget(spoilt);
        std::fs::remove_dir_all(directory.data()).map_err(Error::file("delete", directory.data()))?;
        template = prepare(spec, directory, lifeline).await?;
        prepared = Instant::now();
        started = Server::start(spec, directory, lifeline).await;
    }
    let server = started?;
    say(&Report::Ready(Ready {
        pid: server.pid(),
        directory: directory.path().to_owned(),
        template,
        prepare: prepared - began,
        start: prepared.elapsed(),
    }));
    Ok(server)
}

/// A data directory: from the template, else by initdb. A template that cannot be copied or kept is no error.
async fn prepare(spec: &Spec, directory: &Directory, lifeline: &mut Lifeline) -> Result<Template, Halt> {
    let data = directory.data();
    if let Some(cached) = &spec.template {
        match template::take(cached, &data, spec.user.as_ref()) {
            Ok(true) => return Ok(Template::Hit),
            Ok(false) => {}
            Err(_) => {
                let _half_copied = std::fs::remove_dir_all(&data);
            }
        }
    }
    initdb(spec, directory, lifeline).await?;
    let kept = spec.template.as_ref().is_some_and(|place| template::keep(&data, place).is_ok());
    Ok(if kept { Template::Made } else { Template::Off })
}

/// What the guard hangs on: simq's end of the pipe. SIGTERM cuts it too; SIGINT and SIGHUP, which terminals send to
/// everybody, do not.
pub(super) struct Lifeline {
    pipe: mpsc::Receiver<Wish>,
    /// Wishes that came while something else was waited for.
    kept: VecDeque<Wish>,
    terminate: Signal,
    terminated: bool,
    _deaf: [Signal; 2],
}

impl Lifeline {
    fn grab() -> io::Result<Lifeline> {
        let (wishes, pipe) = mpsc::channel(1);
        // A thread, since a runtime would wait for its blocked read at the end.
        thread::Builder::new().name("lifeline".into()).spawn(move || {
            // An error is the end too.
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                let Ok(wish) = serde_json::from_str(&line) else { continue };
                if wishes.blocking_send(wish).is_err() {
                    return;
                }
            }
        })?;
        Ok(Lifeline {
            pipe,
            kept: VecDeque::new(),
            terminate: signal(SignalKind::terminate())?,
            terminated: false,
            _deaf: [signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?],
        })
    }

    /// Returns when the server is not wanted any more, and from then on at once.
    pub(super) async fn cut(&mut self) {
        while let Some(wish) = self.next().await {
            self.kept.push_back(wish);
        }
    }

    /// What is wished for next; `None` when the server is not wanted any more.
    async fn wish(&mut self) -> Option<Wish> {
        match self.kept.pop_front() {
            Some(kept) if !self.terminated => Some(kept),
            _ => self.next().await,
        }
    }

    async fn next(&mut self) -> Option<Wish> {
        if self.terminated {
            return None;
        }
        tokio::select! {
            wish = self.pipe.recv() => wish,
            _asked = self.terminate.recv() => {
                self.terminated = true;
                None
            }
        }
    }
}
