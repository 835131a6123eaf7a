//! `[[jobs]]`: what arrives, and when.

use std::time::Duration;

use super::error::Problem;
use super::file::Check;
use super::table::{At, Section, table};
use super::trace;
use super::value::{Count, Name, Offset, Priority, Rate, Share, Text};
use super::words::words;
use crate::time::{seconds, show};
use crate::workload::{Arrival, Group};

/// Most jobs of a run: each is held in memory, with all its attempts.
const MOST: u64 = 10_000_000;

table! {
    /// Jobs of one type that arrive in one manner.
    Jobs in "[[jobs]]" {
        /// The job type, such as `email`: letters, digits, `-` and `_`.
        r#type: Name,
        /// How many jobs; a trace brings its own number.
        #[schemars(default)]
        count: Count<1, MOST>,
        /// All at once, evenly spaced, a Poisson process, or at recorded times.
        arrival: Manner = "at-once",
        /// When the first may arrive, from the run's start.
        at: Offset = "0s",
        /// Jobs per time, such as `50/s`, `600/min` or `3600/h`; for `constant` and `poisson`.
        #[schemars(default)]
        rate: Rate,
        /// A CSV file with a column `at` of ascending times; relative to the scenario. For `trace`.
        #[schemars(default)]
        trace: Text,
        /// Higher is claimed first.
        priority: Priority = 0,
        /// Share of jobs whose payload is malformed and that can never succeed.
        permanent: Share = 0.0,
        /// Retries allowed; a policy may say otherwise.
        max_retries: Count<0, 1000> = 3,
    }
}

words! {
    /// In what manner jobs arrive.
    Manner {
        AtOnce = "at-once",
        Constant = "constant",
        Poisson = "poisson",
        Trace = "trace",
    }
}

/// The groups of a file.
pub(super) fn check(jobs: &At<Vec<Section<Jobs>>>, check: &mut Check<'_>) -> Vec<Group> {
    if jobs.value.is_empty() {
        let problem = Problem::new(&jobs.place, "`jobs` is an empty list, and a run needs jobs");
        check.report(problem.help("write [[jobs]] with at least `type` and `count`"));
    }
    let mut groups = Vec::new();
    let mut total = 0_u64;
    for section in &jobs.value {
        let group = check_group(section, check);
        let before = total;
        total = total.saturating_add(group.count);
        if before <= MOST && total > MOST {
            let place = section.raw.count.given().map_or(&section.header.place, |count| &count.place);
            let message = "with this group the scenario has more than ten million jobs";
            check.report(Problem::new(place, message).help("all groups together may have 10_000_000 jobs"));
        }
        groups.push(group);
    }
    groups
}

fn check_group(section: &Section<Jobs>, check: &mut Check<'_>) -> Group {
    let (raw, header) = (&section.raw, &section.header);
    let at = raw.at.or(Offset(Duration::ZERO)).0;
    let kind = raw.r#type.need("type", header, check.problems).map(|at| at.value.0.clone());
    let (arrival, count) = arrival(section, check);
    let group = Group {
        kind: kind.unwrap_or_default(),
        count,
        arrival,
        at,
        priority: raw.priority.or(Priority(0)).0,
        permanent: raw.permanent.or(Share(0.0)).0,
        max_retries: raw.max_retries.or(Count(3)).0 as u32,
    };
    check_ends_in_time(section, &group, check);
    group
}

/// The manner, the number of jobs, and the keys that go with them.
fn arrival(section: &Section<Jobs>, check: &mut Check<'_>) -> (Arrival, u64) {
    let (raw, header) = (&section.raw, &section.header);
    if raw.arrival.is_wrong() {
        return (Arrival::AtOnce, raw.count.value().map_or(0, |count| count.0));
    }
    let common = ["type", "arrival", "at", "priority", "permanent", "max_retries"];
    let takes = |own: &[&'static str]| [common.as_slice(), own].concat();
    let manner = raw.arrival.or(Manner::AtOnce);
    match manner {
        Manner::AtOnce => header.takes("`arrival = \"at-once\"`", &takes(&["count"]), check.problems),
        Manner::Constant => header.takes("`arrival = \"constant\"`", &takes(&["count", "rate"]), check.problems),
        Manner::Poisson => header.takes("`arrival = \"poisson\"`", &takes(&["count", "rate"]), check.problems),
        Manner::Trace => header.takes("`arrival = \"trace\"`", &takes(&["trace"]), check.problems),
    }
    if manner == Manner::Trace {
        let file = raw.trace.need("trace", header, check.problems);
        let times = file.map(|file| trace::read(file, check)).unwrap_or_default();
        let count = times.len() as u64;
        return (Arrival::Trace { times }, count);
    }
    let count = raw.count.need("count", header, check.problems).map_or(0, |at| at.value.0);
    let mut rate = || raw.rate.need("rate", header, check.problems).map_or(f64::INFINITY, |at| at.value.0);
    match manner {
        Manner::Constant => (Arrival::Constant { rate: rate() }, count),
        Manner::Poisson => (Arrival::Poisson { rate: rate() }, count),
        Manner::AtOnce | Manner::Trace => (Arrival::AtOnce, count),
    }
}

/// Refuses jobs that would arrive when the run is over; of a Poisson process, those that would on average.
fn check_ends_in_time(section: &Section<Jobs>, group: &Group, check: &mut Check<'_>) {
    let raw = &section.raw;
    if let Some(at) = raw.at.given().filter(|at| check.is_over_by(at.value.0)) {
        let problem = Problem::new(&at.place, format!("these jobs arrive at {}, after the run", show(group.at)));
        let problem = problem.label(&at.place, "arrive here").help("lower `at` or raise `horizon`");
        let problem = check.stops(problem);
        return check.report(problem);
    }
    let (lasts, place) = match &group.arrival {
        Arrival::AtOnce => return,
        Arrival::Constant { rate } | Arrival::Poisson { rate } => {
            (seconds(group.count.saturating_sub(1) as f64 / rate), raw.rate.given().map(|at| &at.place))
        }
        Arrival::Trace { times } => (times.last().copied().unwrap_or_default(), raw.trace.given().map(|at| &at.place)),
    };
    let end = group.at.saturating_add(lasts);
    if let Some(place) = place.filter(|_| check.is_over(end)) {
        let rounded = Duration::from_millis(u64::try_from(end.as_millis()).unwrap_or(u64::MAX));
        let message = format!("the last of these jobs arrives at {}, after the run", show(rounded));
        let pace = if matches!(group.arrival, Arrival::Trace { .. }) { "as recorded here" } else { "at this pace" };
        let mut problem = Problem::new(place, message).label(place, pace);
        if let Some(count) = raw.count.given() {
            problem = problem.label(&count.place, "so many jobs");
        }
        if let Some(at) = raw.at.given().filter(|at| !at.value.0.is_zero()) {
            problem = problem.label(&at.place, "begin here");
        }
        let problem = check.stops(problem).help("have fewer jobs, let them arrive faster, or raise `horizon`");
        check.report(problem);
    }
}
