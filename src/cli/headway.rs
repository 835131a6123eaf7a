//! How far many runs in virtual time are: a bar on a terminal, plain lines in a pipe, and nothing if they are over at once.
//!
//! The runs add to a counter, once each; a thread of its own looks at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use indicatif::{ProgressBar, ProgressStyle};

use super::progress::{LINE_EVERY, REDRAW, is_terminal};
use super::say::say;

/// Looks before anything is shown: about a second.
const PATIENCE: u64 = 10;

/// Tells how many runs are done.
pub(super) struct Headway {
    shared: Arc<Shared>,
    teller: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    done: AtomicU64,
    over: AtomicBool,
}

impl Headway {
    /// Of so many runs. `quiet`: says nothing.
    pub(super) fn of(runs: u64, quiet: bool) -> Headway {
        let shared = Arc::new(Shared::default());
        let told = shared.clone();
        let teller =
            (!quiet).then(|| std::thread::spawn(move || if is_terminal() { draw(&told, runs) } else { tell(&told, runs) }));
        Headway { shared, teller }
    }

    /// One more is done.
    pub(super) fn one_more(&self) {
        self.shared.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Headway {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(teller) = self.teller.take() {
            teller.thread().unpark();
            // It says nothing of its own death that would be of use to anybody.
            let _ = teller.join();
        }
    }
}

impl Shared {
    /// Waits for the next look; `false` when all is over.
    fn goes_on(&self) -> bool {
        std::thread::park_timeout(REDRAW);
        !self.over.load(Ordering::Relaxed)
    }
}

fn draw(shared: &Shared, runs: u64) {
    let style =
        ProgressStyle::with_template("{bar:24.cyan/dim} {pos}/{len} runs  {elapsed}, {eta} left").expect("the template is valid");
    let mut bar = None::<ProgressBar>;
    for look in 0_u64.. {
        if !shared.goes_on() {
            break;
        }
        if look < PATIENCE {
            continue;
        }
        let bar = bar.get_or_insert_with(|| ProgressBar::new(runs).with_style(style.clone()));
        bar.set_position(shared.done.load(Ordering::Relaxed));
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn tell(shared: &Shared, runs: u64) {
    for look in 1_u64.. {
        if !shared.goes_on() {
            return;
        }
        if look == PATIENCE || look.is_multiple_of(LINE_EVERY) {
            let seconds = look as f64 * REDRAW.as_secs_f64();
            say(&format!("{} of {runs} runs done after {seconds:.0} s", shared.done.load(Ordering::Relaxed)));
        }
    }
}
