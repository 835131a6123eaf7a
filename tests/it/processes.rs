//! What runs on this machine, and how to wait for it to change.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Far beyond what anything here takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A running process.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub command: String,
}

/// Every process that is not a zombie.
pub fn all() -> Vec<Process> {
    match fs::read_dir("/proc/self").and_then(|_| fs::read_dir("/proc")) {
        Ok(entries) => entries.flatten().filter_map(|entry| from_proc(entry.file_name().to_str()?.parse().ok()?)).collect(),
        Err(_) => from_ps(),
    }
}

/// Those whose command line holds `text`.
pub fn naming(text: &str) -> Vec<Process> {
    all().into_iter().filter(|process| process.command.contains(text)).collect()
}

/// The child of `parent` whose command line holds `text`. Until it runs its own program, a child has its parent's command line.
pub fn child(parent: u32, text: &str) -> Option<Process> {
    let mut all = all();
    let parents_command = all.iter().find(|process| process.pid == parent).map(|process| process.command.clone());
    let own = |process: &Process| parents_command.as_ref() != Some(&process.command);
    all.retain(|process| process.parent == parent && process.command.contains(text) && own(process));
    all.pop()
}

/// Waits for `check` to give something.
pub fn until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn from_proc(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    (state != "Z").then_some(Process { pid, parent, command })
}

fn from_ps() -> Vec<Process> {
    let output = Command::new("ps").args(["-axo", "pid=,ppid=,state=,command="]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (pid, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let alive = !words.next()?.starts_with('Z');
            alive.then(|| Process { pid, parent, command: words.collect::<Vec<_>>().join(" ") })
        })
        .collect()
}
