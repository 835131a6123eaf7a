//! What a person sees while it runs: bars on a terminal, plain lines in a pipe. It only reads counters.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::say::say;
use crate::real::{Live, Outcome};
use crate::scenario::{NamedPolicy, Scenario};

/// How often a bar is drawn, and how often a plain line is written.
pub(super) const REDRAW: Duration = Duration::from_millis(100);
pub(super) const LINE_EVERY: u64 = 50;

/// Tells how a comparison goes.
pub(super) struct Progress {
    teller: Arc<Teller>,
    thread: Mutex<Option<JoinHandle<()>>>,
    total: u32,
    begun: AtomicU64,
}

struct Teller {
    live: Arc<Live>,
    bar: Option<ProgressBar>,
    plain: bool,
    jobs: u64,
    horizon: Duration,
    outages: Vec<(f64, f64)>,
    label: Mutex<String>,
    running: AtomicBool,
    over: AtomicBool,
}

impl Progress {
    /// Says nothing yet. `quiet`: and never will.
    pub(super) fn new(scenario: &Scenario, live: Arc<Live>, quiet: bool) -> Progress {
        let terminal = is_terminal();
        let jobs = scenario.job_count();
        let bar = (terminal && !quiet).then(|| bar(jobs));
        let outages = scenario.spells().into_iter();
        let teller = Arc::new(Teller {
            live,
            plain: !quiet && bar.is_none(),
            bar,
            jobs,
            horizon: scenario.horizon,
            outages: outages.map(|o| (o.window.from.as_secs_f64(), o.window.until.as_secs_f64())).collect(),
            label: Mutex::default(),
            running: AtomicBool::new(false),
            over: AtomicBool::new(false),
        });
        let told = teller.clone();
        let thread = (!quiet).then(|| std::thread::spawn(move || told.tell()));
        let total = scenario.repetitions * scenario.policies.len() as u32;
        Progress { teller, thread: Mutex::new(thread), total, begun: AtomicU64::new(0) }
    }

    /// Says a sentence of its own.
    pub(super) fn say(&self, sentence: &str) {
        self.teller.line(sentence);
    }

    /// A run begins.
    pub(super) fn begin(&self, named: &NamedPolicy, repetition: u32) {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let again = if repetition > 1 { format!(" (repetition {repetition})") } else { String::new() };
        let label = format!("[{number}/{}] {}{again}", self.total, named.name);
        if self.teller.plain {
            self.teller.line(&format!("{label}: starts"));
        }
        *self.teller.label.lock().expect("nobody panics while holding it") = label;
        self.teller.running.store(true, Ordering::Relaxed);
    }

    /// A run is over.
    pub(super) fn end(&self, named: &NamedPolicy, outcome: &Outcome) {
        self.teller.running.store(false, Ordering::Relaxed);
        let counts = &outcome.summary.counts;
        self.teller.line(&format!(
            "{}: {:.1} s, {} requests, {} of {} jobs completed, {} discarded, {} unfinished",
            named.name,
            outcome.record.ended.as_secs_f64(),
            outcome.summary.requests,
            counts.completed,
            counts.jobs,
            counts.discarded(),
            counts.unfinished,
        ));
    }

    /// Nothing more to tell.
    pub(super) fn finish(&self) {
        self.teller.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.lock().expect("nobody panics while holding it").take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
        if let Some(bar) = &self.teller.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Whether somebody looks at stderr on a terminal that can redraw.
pub(super) fn is_terminal() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("CI").is_none() && std::env::var("TERM").as_deref() != Ok("dumb")
}

fn bar(jobs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:.bold} {bar:24.cyan/dim} {pos}/{len} jobs  {msg}");
    ProgressBar::new(jobs).with_style(style.expect("the template is valid"))
}

impl Teller {
    fn tell(&self) {
        let mut before = 0;
        for tick in 1_u64.. {
            std::thread::park_timeout(REDRAW);
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            if !self.running.load(Ordering::Relaxed) {
                continue;
            }
            let sent = self.live.sent.load(Ordering::Relaxed);
            if let Some(bar) = &self.bar {
                bar.set_prefix(self.label.lock().expect("nobody panics while holding it").clone());
                bar.set_position(self.live.ended());
            }
            if tick.is_multiple_of(10)
                && let Some(bar) = &self.bar
            {
                bar.set_message(self.status(sent, sent.saturating_sub(before)));
                before = sent;
            }
            if self.plain && tick.is_multiple_of(LINE_EVERY) {
                let seconds = LINE_EVERY as f64 * REDRAW.as_secs_f64();
                let rate = (sent.saturating_sub(before) as f64 / seconds) as u64;
                let label = self.label.lock().expect("nobody panics while holding it").clone();
                self.line(&format!("{label}: {} of {} jobs ended, {}", self.live.ended(), self.jobs, self.status(sent, rate)));
                before = sent;
            }
        }
    }

    fn status(&self, sent: u64, rate: u64) -> String {
        let elapsed = self.live.elapsed.load(Ordering::Relaxed) as f64 / 1e9;
        let phase = if self.outages.iter().any(|(from, until)| (*from..*until).contains(&elapsed)) { "OUTAGE" } else { "up" };
        let left = (self.horizon.as_secs_f64() - elapsed).max(0.0);
        format!("{elapsed:.0} s, downstream {phase}, {sent} requests, {rate}/s, at most {left:.0} s left")
    }

    fn line(&self, sentence: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(sentence)),
            None if self.plain => say(sentence),
            None => {}
        }
    }
}
