//! The log: a CSV line per request, written by a thread of its own, when the request is over.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::call::{Call, Reply};
use crate::time::Instant;

/// Lines that may wait for the disk; a flood beyond them waits, so that no line is lost.
const WAITING: usize = 65_536;

/// A request that is over.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) at: Instant,
    pub(super) call: Call,
    pub(super) path: String,
    pub(super) reply: Reply,
    /// When the answer left; `None` if the caller left first.
    pub(super) left: Option<Instant>,
}

/// A log that is being written. Dropping it writes out the rest.
#[derive(Debug)]
pub(super) struct Log {
    lines: Option<SyncSender<Line>>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    pub(super) fn create(path: &Path) -> io::Result<Log> {
        let mut out = BufWriter::new(File::create(path)?);
        writeln!(out, "arrived_s,job,attempt,path,malformed,outcome,due_s,answered_s,end")?;
        out.flush()?;
        let (sender, lines) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || write_all(&lines, out))?;
        Ok(Log { lines: Some(sender), thread: Some(thread) })
    }

    pub(super) fn write(&self, line: Line) {
        if let Some(lines) = &self.lines {
            let _ = lines.send(line);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.lines.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write_all(lines: &Receiver<Line>, mut out: BufWriter<File>) {
    loop {
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                let _ = out.flush();
                match lines.recv() {
                    Ok(line) => line,
                    Err(_) => break,
                }
            }
        };
        // A full disk must not stop the service; the log then ends here.
        if write(&mut out, &line).is_err() {
            break;
        }
    }
    let _ = out.flush();
}

fn write(out: &mut impl Write, line: &Line) -> io::Result<()> {
    // A century: longer than anybody waits, so that what the reply says is seen.
    let (outcome, due) = line.reply.seen(line.at, Duration::from_secs(3_155_760_000));
    let due = match line.reply {
        Reply::Answer { .. } => Some(due),
        Reply::Slowly { from, .. } => Some(from),
        _ => None,
    };
    let end = if line.left.is_some() { "answered" } else { "left" };
    write!(out, "{},{},{},", Seconds(Some(line.at)), line.call.job.0, line.call.attempt)?;
    write!(out, "{},{},{outcome},", quoted(&line.path), line.call.malformed)?;
    writeln!(out, "{},{},{end}", Seconds(due), Seconds(line.left))
}

fn quoted(path: &str) -> String {
    if path.contains([',', '"']) { format!("\"{}\"", path.replace('"', "\"\"")) } else { path.to_owned() }
}

/// Seconds with all nine decimals; nothing where there is no time.
struct Seconds(Option<Instant>);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.map(Instant::as_nanos) {
            Some(nanos) => write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000),
            None => Ok(()),
        }
    }
}
