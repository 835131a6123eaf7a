//! Processor time and memory, as Linux tells them.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time that this thread has had.
pub fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Processor time of `work` on this thread, and what came of it.
pub fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = spent();
    let done = work();
    (done, spent().saturating_sub(before))
}

/// The most memory that this process has had at once, in MiB.
pub fn peak_mib() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}
