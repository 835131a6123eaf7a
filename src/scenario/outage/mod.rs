//! `[[downstream.outage]]`: when the downstream is down, and how.

mod mode;
mod together;

use std::time::Duration;

use super::error::{Error, Problem};
use super::file::Check;
use super::table::{Field, Place, Section, listed, table};
use super::value::{Count, Factor, Length, Name, Offset, Rate, RetryHint, Share, SomeShare};
use super::words::words;
use crate::downstream::{Mode, Outage};
use crate::nearest::nearest;
use crate::time::{Instant, Window, show};

table! {
    /// A span of a run in which the downstream misbehaves.
    #[schemars(rename = "Outage")]
    RawOutage in "[[downstream.outage]]" {
        /// When it begins, from the run's start.
        at: Offset,
        /// How long it lasts; it ends before the horizon.
        lasts: Length,
        /// How it misbehaves.
        mode: Kind,
        /// It comes again each time so much has passed; left out: it comes once.
        #[schemars(default)]
        every: Length,
        /// Share of the calls that it strikes; of jobs with `permanent`.
        probability: Share = 1.0,
        /// From its begin until it strikes in full.
        ramp_in: Offset = "0s",
        /// How long before its end it begins to fade.
        ramp_out: Offset = "0s",
        /// The job type that it strikes; left out: all.
        #[schemars(default)]
        r#type: Name,
        /// `unavailable` and `rate-limit`: the Retry-After sent along, in whole seconds, or `none`; with `rate-limit` also
        /// `reset`, which counts down to the limit's reset. `rate-limit` sends 1s if not given.
        #[schemars(default)]
        retry_after: RetryHint,
        /// `unavailable` and `rate-limit`: how the Retry-After is written.
        retry_after_as: Form = "seconds",
        /// `brownout`: share of calls that fail on top of the base error rate.
        error_rate: Share = 0.5,
        /// `brownout`: factor on the latency.
        slowdown: Factor = 2.0,
        /// `brownout`: so many servers are left; left out: all.
        #[schemars(default)]
        servers: Count<1, 100_000>,
        /// `rate-limit`: calls allowed per time, such as `50/s`.
        #[schemars(default)]
        rate: Rate,
        /// `rate-limit`: how it counts.
        limiter: Limiter = "token-bucket",
        /// `rate-limit` with a token bucket: calls allowed at once after a quiet time.
        burst: Count<1, 1_000_000> = 1,
        /// `rate-limit` with a window: its length.
        per: Length = "1s",
        /// `rate-limit`: one limit for all callers together, or one for each.
        scope: Scope = "shared",
        /// `slow-body`: from the first byte of the answer to the last.
        takes: Length = "10s",
        /// `permanent`: the status, 400 to 499.
        code: Count<400, 499> = 422,
        /// `slow-start`: the share of its speed that it begins at.
        from: SomeShare = 0.1,
    }
}

words! {
    /// How a downstream misbehaves.
    Kind {
        Unavailable = "unavailable",
        Refuse = "refuse",
        Hang = "hang",
        Reset = "reset",
        SlowBody = "slow-body",
        Truncated = "truncated",
        Garbage = "garbage",
        Maintenance = "maintenance",
        Brownout = "brownout",
        RateLimit = "rate-limit",
        Permanent = "permanent",
        SlowStart = "slow-start",
    }
}

words! {
    /// How a Retry-After is written.
    Form {
        Seconds = "seconds",
        Date = "date",
    }
}

words! {
    /// How a rate limit counts.
    Limiter {
        TokenBucket = "token-bucket",
        FixedWindow = "fixed-window",
        SlidingWindow = "sliding-window",
    }
}

words! {
    /// Whom a rate limit counts together.
    Scope {
        Shared = "shared",
        Caller = "caller",
    }
}

/// The outages in order of time. The service has so many `servers`, if that is known, and the jobs these `types`.
pub(super) fn check(
    sections: &[Section<RawOutage>],
    servers: Option<u32>,
    types: &[String],
    check: &mut Check<'_>,
) -> Vec<Outage> {
    let mut placed: Vec<(Outage, Place)> = Vec::new();
    for section in sections {
        let Some(outage) = check_one(section, check) else { continue };
        check_type(section, types, check);
        check_servers(section, servers, check);
        for (earlier, place) in &placed {
            together::check(earlier, place, &outage, &section.header.place, check);
        }
        placed.push((outage, section.header.place.clone()));
    }
    let mut outages: Vec<Outage> = placed.into_iter().map(|(outage, _)| outage).collect();
    outages.sort_by_key(|outage| outage.window.from);
    outages
}

/// A fault that is started by hand, as a TOML table with the keys of an outage: `at` counts from now and may be left out,
/// and without `lasts` it lasts until it is ended.
///
/// # Errors
/// Everything that is wrong with it.
pub fn fault(text: &str, now: Instant) -> Result<Outage, Error> {
    let root = toml::de::DeTable::parse(text).map_err(|error| Error::Syntax(super::syntax(text, &error)))?;
    let mut problems = Vec::new();
    let section: Section<RawOutage> = Section::new("a fault".to_owned(), 0..0, root.get_ref(), &mut problems);
    let no_traces = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let mut check = Check { horizon: None, read: &no_traces, problems: &mut problems };
    let outage = outage(&section, &mut check);
    match outage {
        Some(outage) if problems.is_empty() => {
            let from = now + outage.window.from.since_start();
            let until = if section.raw.lasts.value().is_some() { from + outage.window.length() } else { Instant::FAR };
            Ok(Outage { window: Window { from, until }, ..outage })
        }
        _ => Err(Error::Invalid { problems }),
    }
}

fn check_one(section: &Section<RawOutage>, check: &mut Check<'_>) -> Option<Outage> {
    let (raw, header) = (&section.raw, &section.header);
    let at = raw.at.need("at", header, check.problems);
    let lasts = raw.lasts.need("lasts", header, check.problems);
    let outage = outage(section, check);
    let (at, lasts) = (at?, lasts?);
    let end = at.value.0.saturating_add(lasts.value.0);
    if check.is_over(end) {
        let problem = Problem::new(&lasts.place, format!("this outage ends at {}, after the run", show(end)))
            .label(&at.place, "starts here")
            .label(&lasts.place, "lasts this long");
        let problem = check.stops(problem).help("raise `horizon`, start the outage earlier or make it shorter");
        check.report(problem);
    }
    outage
}

/// The outage of a table, whose window may be missing.
fn outage(section: &Section<RawOutage>, check: &mut Check<'_>) -> Option<Outage> {
    let raw = &section.raw;
    let mode = mode::check(section, check);
    check_ramps(raw, check);
    check_every(raw, check);
    let lasts = raw.lasts.value().map_or(Duration::MAX, |lasts| lasts.0);
    Some(Outage {
        window: Window::starting(raw.at.or(Offset(Duration::ZERO)).0, lasts),
        mode: mode?,
        every: raw.every.value().map(|every| every.0),
        probability: raw.probability.or(Share(1.0)).0,
        ramp_in: raw.ramp_in.or(Offset(Duration::ZERO)).0,
        ramp_out: raw.ramp_out.or(Offset(Duration::ZERO)).0,
        route: raw.r#type.value().map(|name| name.0.clone()),
    })
}

fn check_every(raw: &RawOutage, check: &mut Check<'_>) {
    let Some(every) = raw.every.given() else { return };
    match raw.lasts.given() {
        Some(lasts) if lasts.value.0 > every.value.0 => {
            let message = format!("`every` ({}) is shorter than `lasts` ({})", show(every.value.0), show(lasts.value.0));
            let problem =
                Problem::new(&every.place, message).label(&lasts.place, "lasts so long").label(&every.place, "and comes again");
            check.report(problem.help("raise `every` or lower `lasts`: a turn ends before the next begins"));
        }
        None if matches!(raw.lasts, Field::Absent) => {
            let problem = Problem::new(&every.place, "`every` means nothing without `lasts`");
            check.report(problem.help("say with `lasts` how long each turn is"));
        }
        _ => {}
    }
}

fn check_ramps(raw: &RawOutage, check: &mut Check<'_>) {
    let Some(lasts) = raw.lasts.given() else { return };
    let ramps = [&raw.ramp_in, &raw.ramp_out];
    let together: Duration =
        ramps.iter().filter_map(|ramp| ramp.value()).map(|ramp| ramp.0).fold(Duration::ZERO, Duration::saturating_add);
    let Some(place) = ramps.iter().find_map(|ramp| ramp.given()).map(|ramp| &ramp.place) else { return };
    if together > lasts.value.0 {
        let message = format!("the ramps take {} of an outage that lasts {}", show(together), show(lasts.value.0));
        let problem = Problem::new(place, message).label(&lasts.place, "lasts so long");
        check.report(problem.help("shorten `ramp_in` and `ramp_out`, or raise `lasts`"));
    }
}

fn check_type(section: &Section<RawOutage>, types: &[String], check: &mut Check<'_>) {
    let Some(kind) = section.raw.r#type.given().filter(|kind| !types.contains(&kind.value.0) && !types.is_empty()) else {
        return;
    };
    let known: Vec<&str> = types.iter().map(String::as_str).collect();
    let help = match nearest(&kind.value.0, &known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are {}", listed(&known)),
    };
    let message = format!("no job is of type {:?}, so this outage strikes nobody", kind.value.0);
    check.report(Problem::new(&kind.place, message).help(help));
}

fn check_servers(section: &Section<RawOutage>, servers: Option<u32>, check: &mut Check<'_>) {
    let (Some(left), Some(servers)) = (section.raw.servers.given(), servers) else { return };
    if left.value.0 >= u64::from(servers) && section.raw.mode.value() == Some(&Kind::Brownout) {
        let message = format!("`servers` ({}) leaves all {servers} that there are", left.value.0);
        check.report(Problem::new(&left.place, message).help("lower it, or take it out"));
    }
}

/// Whether ramps mean something to this mode.
fn has_ramps(mode: Kind) -> bool {
    !matches!(mode, Kind::Refuse | Kind::RateLimit | Kind::Permanent | Kind::SlowStart)
}

/// The mode as the core knows it, where it has no settings.
fn plain(kind: Kind) -> Option<Mode> {
    match kind {
        Kind::Refuse => Some(Mode::Refuse),
        Kind::Hang => Some(Mode::Hang),
        Kind::Reset => Some(Mode::Reset),
        Kind::Truncated => Some(Mode::Truncated),
        Kind::Garbage => Some(Mode::Garbage),
        Kind::Maintenance => Some(Mode::Maintenance),
        _ => None,
    }
}
