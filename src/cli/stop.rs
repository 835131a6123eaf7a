//! Ctrl-C for work that has no runtime: a flag that turns true.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Exit;
use super::say::say;

static STOP: AtomicBool = AtomicBool::new(false);

/// The flag turns true at the first Ctrl-C or SIGTERM; the second ends the process where it is.
pub(super) fn listen(quiet: bool) -> std::io::Result<&'static AtomicBool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        super::postgres::Stop::listen()?
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            signals.asked().await;
            if !quiet {
                say("stopping: what is finished is kept; once more to leave at once");
            }
            STOP.store(true, Ordering::Relaxed);
            signals.asked().await;
            std::process::exit(Exit::Interrupted as i32);
        });
    })?;
    Ok(&STOP)
}
