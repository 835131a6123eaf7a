//! `[downstream]`: the service that the jobs call.

use std::time::Duration;

use super::collapse::{self, RawCollapse};
use super::error::Problem;
use super::file::Check;
use super::outage::{self, RawOutage};
use super::table::{At, Section, table};
use super::value::{Count, Length, Name, Offset, Rate, Share};
use super::words::words;
use super::workers::Timeout;
use crate::dist::Dist;
use crate::downstream::{Discipline, Settings, Users};
use crate::time::show;

/// How long a caller waits unless the file says otherwise.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

table! {
    /// The service that the jobs call.
    Downstream in "[downstream]" {
        /// Calls it works on at once.
        servers: Count<1, 100_000>,
        /// Calls that may wait for a server; the next one is answered 503.
        queue: Count<0, 1_000_000> = 100,
        /// Who of those that wait is served first; with `lifo` a full queue turns away the oldest.
        discipline: Order = "fifo",
        /// A call that would wait for longer than this for a server is answered 503; left out: none is.
        #[schemars(default)]
        shed_after: Length,
        /// How long a server works on a call.
        latency: Section<Latency>,
        /// Share of calls that fail with 500 although nothing is wrong.
        error_rate: Share = 0.0,
        /// How long a caller waits for an answer.
        client_timeout: Length = "2s",
        /// How its capacity falls under load.
        #[schemars(default)]
        collapse: Section<RawCollapse>,
        /// Ordinary users that call it besides the jobs, and do not retry.
        #[schemars(default)]
        users: Section<RawUsers>,
        /// When it is down, and how.
        #[schemars(default)]
        outage: Vec<Section<RawOutage>>,
    }
}

table! {
    /// Ordinary users: an open-loop load without retries on the same downstream, from the start of a run to its end.
    #[schemars(rename = "Users")]
    RawUsers in "[downstream.users]" {
        /// Calls per time, as a Poisson process.
        rate: Rate,
        /// How long a user waits for an answer; left out: as long as the jobs' callers.
        #[schemars(default)]
        timeout: Length,
        /// What they call, as a job type.
        r#type: Name = "users",
    }
}

words! {
    /// Who of those that wait is served first.
    Order {
        Fifo = "fifo",
        Lifo = "lifo",
    }
}

table! {
    /// A distribution of latencies.
    Latency in "latency = { … }" {
        /// The shape.
        kind: Shape,
        /// `constant`: the value.
        #[schemars(default)]
        value: Length,
        /// `uniform`: the lowest value.
        #[schemars(default)]
        min: Offset,
        /// `uniform`: the highest value.
        #[schemars(default)]
        max: Length,
        /// `exponential` and `normal`: the mean.
        #[schemars(default)]
        mean: Length,
        /// `normal`: the standard deviation; the normal is cut off at zero.
        #[schemars(default)]
        sd: Offset,
        /// `log-normal`: half of the values are below.
        #[schemars(default)]
        median: Length,
        /// `log-normal`: 99 of 100 values are below.
        #[schemars(default)]
        p99: Length,
    }
}

words! {
    /// The shape of a distribution.
    Shape {
        Constant = "constant",
        Uniform = "uniform",
        Exponential = "exponential",
        Normal = "normal",
        LogNormal = "log-normal",
    }
}

/// The client's time-out, which the workers' lease is checked against.
pub(super) fn client_timeout(section: Option<&Section<Downstream>>) -> Timeout {
    let given = section.and_then(|section| section.raw.client_timeout.given());
    Timeout { value: given.map_or(CLIENT_TIMEOUT, |at| at.value.0), place: given.map(|at| at.place.clone()) }
}

/// The settings. `types` are the job types of the file.
pub(super) fn check(section: Option<&At<Section<Downstream>>>, types: &[String], check: &mut Check<'_>) -> Settings {
    let Some(At { value: Section { raw, header }, .. }) = section else {
        return Settings::default();
    };
    let latency = raw.latency.need("latency", header, check.problems);
    let client_timeout = raw.client_timeout.or(Length(CLIENT_TIMEOUT)).0;
    let users = raw.users.value().and_then(|section| users(section, client_timeout, check));
    let types = [types, users.as_ref().map(|users| users.route.clone()).as_slice()].concat();
    let mut settings = Settings {
        servers: raw.servers.need("servers", header, check.problems).map_or(0, |at| at.value.0 as u32),
        queue: raw.queue.or(Count(100)).0 as u32,
        discipline: match raw.discipline.or(Order::Fifo) {
            Order::Fifo => Discipline::Fifo,
            Order::Lifo => Discipline::Lifo,
        },
        shed_after: raw.shed_after.value().map(|after| after.0),
        latency: latency.and_then(|at| dist(&at.value, check)).unwrap_or(Dist::Constant { value: Duration::ZERO }),
        error_rate: raw.error_rate.or(Share(0.0)).0,
        client_timeout,
        users,
        ..Settings::default()
    };
    let holds = u64::from(settings.servers) + u64::from(settings.queue);
    settings.collapse = raw.collapse.value().map(|section| collapse::check(section, holds, check));
    let servers = Some(settings.servers).filter(|servers| *servers > 0);
    let outages = raw.outage.value().map(|sections| outage::check(sections, servers, &types, check));
    settings.outages = outages.unwrap_or_default();
    settings
}

fn users(section: &Section<RawUsers>, client_timeout: Duration, check: &mut Check<'_>) -> Option<Users> {
    let (raw, header) = (&section.raw, &section.header);
    Some(Users {
        rate: raw.rate.need("rate", header, check.problems)?.value.0,
        timeout: raw.timeout.or(Length(client_timeout)).0,
        route: raw.r#type.or(Name("users".to_owned())).0,
    })
}

fn dist(section: &Section<Latency>, check: &mut Check<'_>) -> Option<Dist> {
    let (raw, header) = (&section.raw, &section.header);
    let problems = &mut *check.problems;
    let kind = raw.kind.need("kind", header, problems)?;
    match kind.value {
        Shape::Constant => {
            header.takes("`kind = \"constant\"`", &["kind", "value"], problems);
            Some(Dist::Constant { value: raw.value.need("value", header, problems)?.value.0 })
        }
        Shape::Uniform => {
            header.takes("`kind = \"uniform\"`", &["kind", "min", "max"], problems);
            let (min, max) = (raw.min.need("min", header, problems), raw.max.need("max", header, problems));
            let (min, max) = (min?, max?);
            let (low, high) = (At::duration(min, min.value.0), At::duration(max, max.value.0));
            ordered("min", &low, "max", &high, check);
            Some(Dist::Uniform { min: low.value, max: high.value })
        }
        Shape::Exponential => {
            header.takes("`kind = \"exponential\"`", &["kind", "mean"], problems);
            Some(Dist::Exponential { mean: raw.mean.need("mean", header, problems)?.value.0 })
        }
        Shape::Normal => {
            header.takes("`kind = \"normal\"`", &["kind", "mean", "sd"], problems);
            let (mean, sd) = (raw.mean.need("mean", header, problems), raw.sd.need("sd", header, problems));
            Some(Dist::Normal { mean: mean?.value.0, sd: sd?.value.0 })
        }
        Shape::LogNormal => {
            header.takes("`kind = \"log-normal\"`", &["kind", "median", "p99"], problems);
            let (median, p99) = (raw.median.need("median", header, problems), raw.p99.need("p99", header, problems));
            let (median, p99) = (median?, p99?);
            let (low, high) = (At::duration(median, median.value.0), At::duration(p99, p99.value.0));
            ordered("median", &low, "p99", &high, check);
            Some(Dist::LogNormal { median: low.value, p99: high.value })
        }
    }
}

impl<T> At<T> {
    /// The same place with a plain duration.
    fn duration(at: &At<T>, value: Duration) -> At<Duration> {
        At { value, key: at.key.clone(), place: at.place.clone() }
    }
}

/// Refuses a `high` below `low`.
fn ordered(low_name: &str, low: &At<Duration>, high_name: &str, high: &At<Duration>, check: &mut Check<'_>) {
    if high.value < low.value {
        let message = format!("`{high_name}` ({}) is below `{low_name}` ({})", show(high.value), show(low.value));
        let problem = Problem::new(&high.place, message)
            .label(&low.place, format!("`{low_name}`"))
            .label(&high.place, "is below it")
            .help(format!("raise `{high_name}` or lower `{low_name}`"));
        check.report(problem);
    }
}
