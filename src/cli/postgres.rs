//! `simq postgres`: a throwaway server for the terminal, or around one command.

use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::ExitStatus;
use std::time::Duration;
use std::{env, process};

use anyhow::Context;
use rustix::process::{Pid, Signal as Sig, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use super::exit::Code;
use super::say::say;
use super::{Exit, args};
use crate::real::pg;
use crate::real::pg::throwaway::{self, Options, Startup, Template, Throwaway};

/// How long a command has to end after its server did.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn main(args: args::Postgres) -> anyhow::Result<Exit> {
    shed_pgoptions()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    match runtime.block_on(serve(args))? {
        None => Ok(Exit::Done),
        // The command's own code, which need not be one of ours.
        Some(status) => process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))),
    }
}

pub(super) fn guard() -> anyhow::Result<Exit> {
    throwaway::guard()?;
    Ok(Exit::Done)
}

/// Starts this process anew without `PGOPTIONS`, if it is set: sqlx would apply it to the throwaway server's sessions.
pub(super) fn shed_pgoptions() -> anyhow::Result<()> {
    if env::var_os("PGOPTIONS").is_none() {
        return Ok(());
    }
    let mut again = process::Command::new(env::current_exe()?);
    Err(again.args(env::args_os().skip(1)).env_remove("PGOPTIONS").exec().into())
}

async fn serve(args: args::Postgres) -> anyhow::Result<Option<ExitStatus>> {
    let options = Options { durable: args.durable, ..Options::default() };
    let server = Throwaway::start(options).await.context(Code(Exit::Environment))?;
    let mut stop = Stop::listen()?;
    say(&figures(server.startup()));
    if args.migrate {
        pg::migrate(&server.connect_options()).await.context(Code(Exit::Environment))?;
    }
    match args.command.split_first() {
        None => stay(server, &mut stop).await.map(|()| None),
        Some((program, words)) => around(server, &mut stop, program, words).await.map(Some),
    }
}

/// The URL on stdout, then nothing until Ctrl-C or SIGTERM.
async fn stay(mut server: Throwaway, stop: &mut Stop) -> anyhow::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{}", server.url()).and_then(|()| out.flush())?;
    tokio::select! {
        ended = server.ended() => return Err(ended).context(Code(Exit::Environment)),
        _ = stop.asked() => {}
    }
    server.stop().await.context(Code(Exit::Environment))
}

/// The command's end is ours. Ctrl-C reaches it by itself; SIGTERM is passed on.
async fn around(mut server: Throwaway, stop: &mut Stop, program: &str, words: &[String]) -> anyhow::Result<ExitStatus> {
    let started = Command::new(program).args(words).env("DATABASE_URL", server.url()).spawn();
    let mut child = started.with_context(|| format!("cannot run {program}")).context(Code(Exit::Usage))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            asked = stop.asked() => if asked == Asked::Terminate { send_term(&child) },
            ended = server.ended() => {
                send_term(&child);
                if timeout(PATIENCE, child.wait()).await.is_err() {
                    child.kill().await?;
                }
                return Err(ended).context(Code(Exit::Environment));
            }
        }
    };
    server.stop().await.context(Code(Exit::Environment))?;
    Ok(status)
}

fn send_term(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        let _gone = kill_process(pid, Sig::TERM);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Interrupt,
    Terminate,
}

/// Ctrl-C, SIGTERM and the end of the terminal, as things to wait for.
pub(super) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    /// Not where it is ignored, as under nohup: then simq is meant to outlive its terminal.
    hangup: Option<Signal>,
}

impl Stop {
    pub(super) fn listen() -> io::Result<Stop> {
        let hangup = if hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Stop { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, hangup })
    }

    pub(super) async fn asked(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
            () = hung_up(&mut self.hangup) => Asked::Terminate,
        }
    }
}

async fn hung_up(hangup: &mut Option<Signal>) {
    match hangup {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether this process was started with SIGHUP ignored; where the system does not tell, it was not.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// One line: which server, and where the time went.
pub(super) fn figures(startup: &Startup) -> String {
    let binaries = &startup.binaries;
    let prepared = match startup.template {
        Template::Hit => "template copied",
        Template::Made => "initdb, template kept",
        Template::Off => "initdb",
    };
    format!(
        "PostgreSQL {} ({}: {}) ready in {} ms: found in {}, {prepared} in {}, started in {}",
        binaries.version,
        binaries.source,
        binaries.bin.display(),
        startup.total.as_millis(),
        startup.find.as_millis(),
        startup.prepare.as_millis(),
        startup.start.as_millis(),
    )
}
