//! When things happen: instants since a run began, windows between them, and durations as people write them.
//!
//! One clock, one unit. An [`Instant`] is a count of nanoseconds since the run's epoch, whoever keeps the clock:
//! the simulator's calendar or the machine's monotonic clock. This room reads no clock itself. All arithmetic
//! saturates, so that a delay of centuries is a very late instant and never a wrapped one.

use std::fmt;
use std::num::NonZero;
use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in a run: nanoseconds since the run began.
///
/// Kept as one more than that, so that an instant that may be missing takes no more room: runs have millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Instant(NonZero<u64>);

impl Instant {
    /// The moment the run began.
    pub const START: Instant = Instant(NonZero::<u64>::MIN);
    /// Later than every event of any run (584 years).
    pub const FAR: Instant = Instant(NonZero::<u64>::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(NonZero::<u64>::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the start, for charts and tables.
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// Time from the start to this instant.
    pub const fn since_start(self) -> Duration {
        Duration::from_nanos(self.as_nanos())
    }

    /// Time from `earlier` to `self`; zero if `earlier` is the later one.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// This instant moved back by `by`; not before the start.
    pub fn before(self, by: Duration) -> Instant {
        Instant::from_nanos(self.as_nanos().saturating_sub(nanos(by)))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates at [`Instant::FAR`].
    fn add(self, by: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(by)))
    }
}

impl Default for Instant {
    fn default() -> Instant {
        Instant::START
    }
}

impl From<u64> for Instant {
    /// So many nanoseconds after the start.
    fn from(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }
}

impl From<Instant> for u64 {
    /// Nanoseconds since the start.
    fn from(at: Instant) -> u64 {
        at.as_nanos()
    }
}

/// Nanoseconds in a duration, saturating at `u64::MAX`.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A duration from a number of seconds: negative and NaN give zero, too large gives the longest duration that an
/// [`Instant`] can hold.
pub fn seconds(secs: f64) -> Duration {
    if secs.is_nan() || secs <= 0.0 {
        return Duration::ZERO;
    }
    Duration::from_nanos((secs * 1e9).min(u64::MAX as f64) as u64)
}

/// A half-open span of a run: `from` is inside, `until` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// First instant inside.
    pub from: Instant,
    /// First instant after it.
    pub until: Instant,
}

impl Window {
    /// The window that starts `at` after the run's start and `lasts` so long.
    pub fn starting(at: Duration, lasts: Duration) -> Window {
        let from = Instant::START + at;
        Window { from, until: from + lasts }
    }

    /// Whether `at` is inside.
    pub fn contains(&self, at: Instant) -> bool {
        self.from <= at && at < self.until
    }

    /// Whether some instant is inside both.
    pub fn overlaps(&self, other: &Window) -> bool {
        self.from < other.until && other.from < self.until
    }

    /// How long it is.
    pub fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// A duration as a person writes it: `250ms`, `2s`, `1m30s`.
///
/// # Errors
/// One sentence that says what is wrong and what would be right: a bare number, an unknown unit, a negative value, or
/// a value beyond a century.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let example = "write a number with a unit, such as \"250ms\", \"2s\" or \"1m30s\"";
    if trimmed.starts_with('-') {
        return Err(format!("`{trimmed}` is negative: {example}"));
    }
    if !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(format!("`{trimmed}` has no unit: write \"{trimmed}s\" for seconds or \"{trimmed}ms\" for milliseconds"));
    }
    let duration = match humantime::parse_duration(trimmed) {
        Ok(duration) => duration,
        Err(humantime::DurationError::NumberOverflow) => {
            return Err(format!("`{trimmed}` is too large: the longest is 100 years"));
        }
        Err(_) => return Err(format!("`{trimmed}` is not a duration: {example}")),
    };
    const CENTURY: Duration = Duration::from_secs(100 * 366 * 86_400);
    if duration > CENTURY {
        return Err(format!("`{trimmed}` is too large: the longest is 100 years"));
    }
    Ok(duration)
}

/// A duration as this crate prints it: `1m 30s`, `250ms`.
pub fn show(duration: Duration) -> impl fmt::Display {
    humantime::format_duration(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration(" 2s "), Ok(Duration::from_secs(2)));
    }

    #[test]
    fn a_bare_number_is_refused_with_a_hint() {
        let message = parse_duration("5").expect_err("no unit");
        assert!(message.contains("5s") && message.contains("5ms"), "{message}");
    }

    #[test]
    fn nonsense_negatives_and_overflow_are_refused() {
        for text in ["", "fast", "-1s", "99999999999999999999s", "101years"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
        assert_eq!(Instant::START.before(Duration::from_secs(1)), Instant::START);
        assert_eq!(seconds(f64::NAN), Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn a_window_is_half_open() {
        let window = Window::starting(Duration::from_secs(1), Duration::from_secs(2));
        assert!(!window.contains(Instant::from_nanos(999_999_999)));
        assert!(window.contains(Instant::from_nanos(1_000_000_000)));
        assert!(!window.contains(Instant::from_nanos(3_000_000_000)));
        assert!(!window.overlaps(&Window::starting(Duration::from_secs(3), Duration::from_secs(1))));
    }
}
