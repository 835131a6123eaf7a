//! The catalogue of figures: what each is called, in what unit, and how it is read from a [`Summary`].
//!
//! One list. The table, the CSV header, the JSON and a baseline loop over it, so that a figure has one name everywhere.

use std::fmt;
use std::time::Duration;

use super::{Percentiles, Summary, UserFigures, UserPhase};

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in files, unit last.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Which way is better, all else equal.
    pub better: Better,
    /// What it means, in one sentence.
    pub doc: &'static str,
    read: Read,
}

/// How a figure is read from a summary.
#[derive(Clone, Copy, Debug)]
enum Read {
    Count(fn(&Summary) -> Option<u64>),
    Number(fn(&Summary) -> Option<f64>),
    Time(fn(&Summary) -> Option<Duration>),
    Percentile(fn(&Summary) -> &Percentiles, fn(&Percentiles) -> f64),
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Jobs.
    Jobs,
    /// Calls to the downstream.
    Calls,
    /// Statements or transactions.
    Statements,
    /// A ratio.
    Ratio,
    /// A share, 0 to 1.
    Share,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower.
    Lower,
    /// Higher.
    Higher,
    /// Neither: a circumstance.
    Neither,
}

/// The value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count, exact.
    Count(u64),
    /// A finite number, rounded to six decimals.
    Number(f64),
}

impl Value {
    /// The value as a number, for medians and axes.
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Count(count) => count as f64,
            Value::Number(number) => number,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => count.fmt(f),
            Value::Number(number) => number.fmt(f),
        }
    }
}

impl Metric {
    /// The metric of this name.
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Its value in this summary; `None` where the run has no such value.
    pub fn value(&self, summary: &Summary) -> Option<Value> {
        match self.read {
            Read::Count(read) => read(summary).map(Value::Count),
            Read::Number(read) => read(summary).and_then(rounded),
            Read::Time(read) => read(summary).and_then(|time| rounded(time.as_secs_f64())),
            Read::Percentile(of, read) => Some(of(summary)).filter(|of| of.count > 0).and_then(|of| rounded(read(of))),
        }
    }
}

/// Every figure, in the order of the files' columns.
pub const METRICS: &[Metric] = &[
    jobs("jobs", Better::Neither, "jobs that arrived, or should have", |s| Some(s.counts.jobs)),
    jobs("completed", Better::Higher, "jobs completed", |s| Some(s.counts.completed)),
    jobs("discarded", Better::Lower, "jobs given up, for whatever reason", |s| Some(s.counts.discarded())),
    jobs("unfinished", Better::Lower, "jobs not in a terminal state when the run ended", |s| Some(s.counts.unfinished)),
    calls("requests", Better::Lower, "calls sent to the downstream", |s| Some(s.requests)),
    ratio("amplification", "calls per job", |s| Some(s.amplification)),
    calls("wasted_requests", Better::Lower, "calls sent in an outage that failed", |s| Some(s.wasted_requests)),
    calls("stampede_peak", Better::Lower, "most calls in any stampede window", |s| Some(s.stampede_peak.calls)),
    calls("first_peak", Better::Neither, "most first attempts in any stampede window", |s| Some(s.first_peak.calls)),
    calls("retry_peak", Better::Lower, "most retries in any stampede window", |s| Some(s.retry_peak.calls)),
    calls("recovery_peak", Better::Lower, "most calls in any stampede window after an outage's end", |s| {
        s.recovery_peak.map(|peak| peak.calls)
    }),
    seconds("completion_p50_s", "until half of all jobs that can be completed were", |s| s.completion_p50),
    seconds("completion_p90_s", "until 90 % of them were", |s| s.completion_p90),
    seconds("completion_p99_s", "until 99 % of all jobs were completed", |s| s.completion_p99),
    seconds("completion_p100_s", "until all jobs were completed", |s| s.completion_p100),
    seconds("makespan_s", "from the first arrival to the last settlement", |s| s.makespan),
    seconds("time_to_recover_s", "from the last outage's end until every job that had arrived by then was completed", |s| {
        s.time_to_recover
    }),
    jobs("permanent", Better::Neither, "jobs given up because the failure was permanent", |s| Some(s.counts.permanent)),
    jobs("exhausted", Better::Lower, "jobs given up because the retries were spent", |s| Some(s.counts.exhausted)),
    jobs("lost", Better::Lower, "jobs that could have succeeded and did not: exhausted or unfinished", |s| Some(s.counts.lost())),
    calls("malformed_requests", Better::Lower, "calls for jobs whose payload is malformed, which never succeed", |s| {
        Some(s.malformed_requests)
    }),
    ratio("peak_over_mean", "the stampede peak over the mean of such windows", |s| s.peak_over_mean),
    millis("latency_ms_p50", "call sent to answer, median", |s| &s.latency, |p| p.p50_ms),
    millis("latency_ms_p90", "call sent to answer, 90 %", |s| &s.latency, |p| p.p90_ms),
    millis("latency_ms_p99", "call sent to answer, 99 %", |s| &s.latency, |p| p.p99_ms),
    millis("latency_ms_max", "call sent to answer, the longest", |s| &s.latency, |p| p.max_ms),
    millis("job_time_ms_p50", "arrival to completion of completed jobs, median", |s| &s.job_time, |p| p.p50_ms),
    millis("job_time_ms_p90", "arrival to completion of completed jobs, 90 %", |s| &s.job_time, |p| p.p90_ms),
    millis("job_time_ms_p99", "arrival to completion of completed jobs, 99 %", |s| &s.job_time, |p| p.p99_ms),
    millis("job_time_ms_max", "arrival to completion of completed jobs, the longest", |s| &s.job_time, |p| p.max_ms),
    millis("schedule_lag_ms_p50", "due to claimed, median", |s| &s.schedule_lag, |p| p.p50_ms),
    millis("schedule_lag_ms_p90", "due to claimed, 90 %", |s| &s.schedule_lag, |p| p.p90_ms),
    millis("schedule_lag_ms_p99", "due to claimed, 99 %", |s| &s.schedule_lag, |p| p.p99_ms),
    millis("schedule_lag_ms_max", "due to claimed, the longest", |s| &s.schedule_lag, |p| p.max_ms),
    millis("claim_ms_p50", "claim asked for to answered, median", |s| &s.claim_latency, |p| p.p50_ms),
    millis("claim_ms_p99", "claim asked for to answered, 99 %", |s| &s.claim_latency, |p| p.p99_ms),
    millis("claim_ms_max", "claim asked for to answered, the longest", |s| &s.claim_latency, |p| p.max_ms),
    millis("settle_ms_p50", "settlement asked for to confirmed, median", |s| &s.settle_latency, |p| p.p50_ms),
    millis("settle_ms_p99", "settlement asked for to confirmed, 99 %", |s| &s.settle_latency, |p| p.p99_ms),
    millis("settle_ms_max", "settlement asked for to confirmed, the longest", |s| &s.settle_latency, |p| p.max_ms),
    statements("claims", "claim statements sent", |s| Some(s.claims)),
    statements("empty_claims", "claims that found nothing", |s| Some(s.empty_claims)),
    statements("transactions", "transactions committed or rolled back for the workers", |s| Some(s.transactions)),
    calls("lost_leases", Better::Lower, "claims whose lease ran out", |s| Some(s.lost_leases)),
    calls("repeated_calls", Better::Lower, "calls made again, since the store never heard how they ended", |s| {
        Some(s.repeated_calls)
    }),
    statements("store_failures", "operations of the store that failed", |s| Some(s.store_failures)),
    seconds("longest_stall_s", "the longest time without a settlement that followed a blow of chaos", |s| s.longest_stall),
    share("wasted_work", "the downstream's work whose callers had given up when it was done", |s| s.wasted_work),
    share("wasted_work_after", "the same after the last outage, while more than half of the calls failed", |s| {
        s.aftermath?.wasted_work
    }),
    seconds("down_after_s", "from the last outage's end until the calls no longer failed, or to the run's end", |s| {
        s.aftermath.map(|after| after.down_for)
    }),
    calls("user_calls", Better::Neither, "calls of ordinary users that ended", |s| s.users.map(|users| users.all.calls)),
    share("user_failed", "share of ordinary users' calls that failed", |s| s.users?.all.failed_share()),
    share("user_failed_before", "the same before the first outage", |s| s.users?.before.failed_share()),
    share("user_failed_during", "the same in an outage", |s| s.users?.during.failed_share()),
    share("user_failed_after", "the same after an outage", |s| s.users?.after.failed_share()),
    millis("user_latency_ms_p50", "ordinary users' calls to answer, median", |s| users(s, |u| &u.all), |p| p.p50_ms),
    millis("user_latency_ms_p99", "ordinary users' calls to answer, 99 %", |s| users(s, |u| &u.all), |p| p.p99_ms),
    millis("user_latency_ms_p50_before", "the median before the first outage", |s| users(s, |u| &u.before), |p| p.p50_ms),
    millis("user_latency_ms_p99_before", "the 99 % before the first outage", |s| users(s, |u| &u.before), |p| p.p99_ms),
    millis("user_latency_ms_p50_during", "the median in an outage", |s| users(s, |u| &u.during), |p| p.p50_ms),
    millis("user_latency_ms_p99_during", "the 99 % in an outage", |s| users(s, |u| &u.during), |p| p.p99_ms),
    millis("user_latency_ms_p50_after", "the median after an outage", |s| users(s, |u| &u.after), |p| p.p50_ms),
    millis("user_latency_ms_p99_after", "the 99 % after an outage", |s| users(s, |u| &u.after), |p| p.p99_ms),
    calls("arrivals_at_downstream", Better::Neither, "calls that reached the downstream, as it counted them", |s| {
        Some(s.arrivals_at_downstream)
    }),
];

/// What stands for the percentiles of nobody.
static NOBODY: Percentiles = Percentiles { count: 0, p50_ms: 0.0, p90_ms: 0.0, p99_ms: 0.0, max_ms: 0.0 };

fn users(summary: &Summary, phase: fn(&UserFigures) -> &UserPhase) -> &Percentiles {
    summary.users.as_ref().map_or(&NOBODY, |users| &phase(users).latency)
}

fn rounded(number: f64) -> Option<Value> {
    number.is_finite().then(|| Value::Number((number * 1e6).round() / 1e6))
}

const fn jobs(name: &'static str, better: Better, doc: &'static str, read: fn(&Summary) -> Option<u64>) -> Metric {
    Metric { name, unit: Unit::Jobs, better, doc, read: Read::Count(read) }
}

const fn calls(name: &'static str, better: Better, doc: &'static str, read: fn(&Summary) -> Option<u64>) -> Metric {
    Metric { name, unit: Unit::Calls, better, doc, read: Read::Count(read) }
}

const fn statements(name: &'static str, doc: &'static str, read: fn(&Summary) -> Option<u64>) -> Metric {
    Metric { name, unit: Unit::Statements, better: Better::Lower, doc, read: Read::Count(read) }
}

const fn ratio(name: &'static str, doc: &'static str, read: fn(&Summary) -> Option<f64>) -> Metric {
    Metric { name, unit: Unit::Ratio, better: Better::Lower, doc, read: Read::Number(read) }
}

const fn share(name: &'static str, doc: &'static str, read: fn(&Summary) -> Option<f64>) -> Metric {
    Metric { name, unit: Unit::Share, better: Better::Lower, doc, read: Read::Number(read) }
}

const fn seconds(name: &'static str, doc: &'static str, read: fn(&Summary) -> Option<Duration>) -> Metric {
    Metric { name, unit: Unit::Seconds, better: Better::Lower, doc, read: Read::Time(read) }
}

const fn millis(
    name: &'static str,
    doc: &'static str,
    of: fn(&Summary) -> &Percentiles,
    read: fn(&Percentiles) -> f64,
) -> Metric {
    Metric { name, unit: Unit::Millis, better: Better::Lower, doc, read: Read::Percentile(of, read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            assert_eq!(metric.name.ends_with("_s"), metric.unit == Unit::Seconds, "{}", metric.name);
            assert_eq!(metric.name.contains("_ms_"), metric.unit == Unit::Millis, "{}", metric.name);
        }
    }

    #[test]
    fn what_is_not_a_number_is_no_value() {
        assert_eq!(rounded(f64::NAN), None);
        assert_eq!(rounded(f64::INFINITY), None);
        assert_eq!(rounded(1.234_567_89), Some(Value::Number(1.234_568)));
        assert_eq!(Value::Number(7.0).to_string(), "7");
    }
}
