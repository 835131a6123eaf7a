//! Tables for other programs: one header line, one row per thing, times in seconds, an empty cell where there is no value.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::{Error, seeds, series};
use crate::job::{JobId, Why};
use crate::metrics::{Attempt, Fate, METRICS};
use crate::report::{Comparison, Run};
use crate::time::Instant;

pub(super) type Writer = ::csv::Writer<BufWriter<File>>;

/// One row per policy and repetition: every figure of the catalogue.
pub(super) fn summary(comparison: &Comparison, path: &Path) -> Result<(), Error> {
    table(path, |out| {
        let names = METRICS.iter().map(|metric| metric.name);
        out.write_record(["policy", "repetition", "seed"].into_iter().chain(names).chain(["limit", "partial"]))?;
        for run in &comparison.runs {
            let mut row = vec![run.policy.clone(), run.repetition.to_string(), run.seed.to_string()];
            row.extend(METRICS.iter().map(|metric| cell(metric.value(&run.summary))));
            row.extend([limit(run).to_owned(), run.partial.to_string()]);
            out.write_record(row)?;
        }
        Ok(())
    })
}

/// One row per policy and figure, over all repetitions.
pub(super) fn across(comparison: &Comparison, path: &Path) -> Result<(), Error> {
    table(path, |out| {
        out.write_record(seeds::COLUMNS)?;
        seeds::rows(comparison).iter().try_for_each(|row| out.write_record(row))
    })
}

/// One row per policy, repetition and bin of time; of repetitions that were recorded.
pub(super) fn timeseries(comparison: &Comparison, path: &Path) -> Result<(), Error> {
    let width = series::bin_width(series::span(comparison));
    table(path, |out| {
        out.write_record([
            "policy",
            "repetition",
            "t_s",
            "bin_s",
            "requests",
            "first_attempts",
            "retries",
            "completed",
            "failed",
            "discarded",
            "backlog",
            "in_outage",
        ])?;
        for run in comparison.runs.iter().filter(|run| run.is_recorded()) {
            for bin in series::bins(&run.record, width) {
                out.serialize((
                    (&run.policy, run.repetition, bin.start.as_secs_f64(), width.as_secs_f64()),
                    (bin.requests, bin.first_attempts, bin.retries),
                    (bin.completed, bin.failed, bin.discarded, bin.backlog),
                    series::modes(&comparison.scenario, bin.start),
                ))?;
            }
        }
        Ok(())
    })
}

/// One row per attempt, in the order in which they were sent.
pub(super) fn attempts(comparison: &Comparison, path: &Path) -> Result<(), Error> {
    table(path, |out| {
        out.write_record([
            "policy",
            "repetition",
            "job",
            "type",
            "attempt",
            "worker",
            "due_s",
            "claimed_s",
            "sent_s",
            "answered_s",
            "settled_s",
            "outcome",
            "fate",
            "delay_s",
        ])?;
        let kinds = Kinds::of(comparison);
        let mut line = Line::default();
        for run in &comparison.runs {
            let repetition = run.repetition.to_string();
            for attempt in &run.record.attempts {
                out.write_field(&run.policy)?;
                out.write_field(&repetition)?;
                write_attempt(out, &mut line, attempt, kinds.of_job(run, attempt.job))?;
            }
        }
        Ok(())
    })
}

fn write_attempt(out: &mut Writer, line: &mut Line, attempt: &Attempt, kind: &str) -> ::csv::Result<()> {
    out.write_field(line.show(attempt.job.0))?;
    out.write_field(kind)?;
    for number in [attempt.attempt, attempt.worker] {
        out.write_field(line.show(number))?;
    }
    for instant in [attempt.due, attempt.claimed, attempt.sent] {
        out.write_field(line.seconds(Some(instant)))?;
    }
    for instant in [attempt.answered, attempt.settled] {
        out.write_field(line.seconds(instant))?;
    }
    match attempt.outcome {
        Some(outcome) => out.write_field(line.show(outcome))?,
        None => out.write_field("")?,
    }
    out.write_field(attempt.fate.name())?;
    let delay = match attempt.fate {
        Fate::Retried(delay) => Some(Instant::START + delay),
        _ => None,
    };
    out.write_field(line.seconds(delay))?;
    out.write_record(None::<&[u8]>)
}

/// `last_due_after_s` is `schedule_at - created_at` on the job's row: what its delays add up to.
const JOB_COLUMNS: [&str; 10] =
    ["policy", "repetition", "job", "type", "arrived_s", "state", "why", "retries", "last_due_after_s", "finished_s"];

/// The job types by the number of their group.
struct Kinds<'a>(Vec<&'a str>);

impl<'a> Kinds<'a> {
    fn of(comparison: &'a Comparison) -> Kinds<'a> {
        Kinds(comparison.scenario.jobs.iter().map(|group| group.kind.as_str()).collect())
    }

    fn name(&self, group: usize) -> &'a str {
        self.0.get(group).copied().unwrap_or_default()
    }

    fn of_job(&self, run: &Run, job: JobId) -> &'a str {
        let jobs = &run.record.jobs;
        jobs.binary_search_by_key(&job, |record| record.job).map_or("", |place| self.name(jobs[place].group))
    }
}

/// One row per job, as the run left it.
pub(super) fn jobs(comparison: &Comparison, path: &Path) -> Result<(), Error> {
    table(path, |out| {
        out.write_record(JOB_COLUMNS)?;
        let kinds = Kinds::of(comparison);
        let (mut arrived, mut due, mut finished) = (Line::default(), Line::default(), Line::default());
        for run in &comparison.runs {
            for job in &run.record.jobs {
                let why = match job.why {
                    Some(Why::Permanent) => "permanent",
                    Some(Why::Exhausted) => "exhausted",
                    None => "",
                };
                let due = due.seconds(job.last_due.map(|due| Instant::START + due));
                let id = (&run.policy, run.repetition, job.job.0, kinds.name(job.group));
                let end = (job.state.name(), why, job.retries, due, finished.seconds(job.finished));
                out.serialize((id, arrived.seconds(Some(job.arrived)), end))?;
            }
        }
        Ok(())
    })
}

/// The word for what bounded a run.
pub(super) fn limit(run: &Run) -> &'static str {
    use crate::metrics::Limit;
    match run.summary.limit {
        Limit::Policy => "policy",
        Limit::Downstream => "downstream",
        Limit::Database => "database",
        Limit::Wakeup => "wakeup",
        Limit::Harness => "harness",
    }
}

fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Opens the file, lets `fill` write its rows, and flushes.
pub(super) fn table(path: &Path, fill: impl FnOnce(&mut Writer) -> ::csv::Result<()>) -> Result<(), Error> {
    let file = File::create(path).map_err(Error::at(path))?;
    // Headers are written by hand: they differ from field names. Rows may be tuples.
    let mut out = ::csv::WriterBuilder::new().has_headers(false).from_writer(BufWriter::with_capacity(1 << 16, file));
    let filled = fill(&mut out).map_err(io::Error::from);
    filled.and_then(|()| out.flush()).map_err(Error::at(path))
}

/// A moment in seconds; empty where there is none.
pub(super) fn seconds_of(at: Option<Instant>) -> String {
    Line::default().seconds(at).to_owned()
}

/// One cell's text, kept from cell to cell: a log has millions of cells.
#[derive(Default)]
struct Line(Vec<u8>);

impl Line {
    fn show(&mut self, value: impl std::fmt::Display) -> &[u8] {
        self.0.clear();
        write!(self.0, "{value}").expect("writing to memory does not fail");
        &self.0
    }

    /// Seconds with all nine decimals of the clock, exactly; empty where there is none.
    fn seconds(&mut self, at: Option<Instant>) -> &str {
        self.0.clear();
        if let Some(nanos) = at.map(Instant::as_nanos) {
            write!(self.0, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000).expect("writing to memory does not fail");
        }
        std::str::from_utf8(&self.0).expect("digits and a dot are UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_keep_every_nanosecond() {
        let mut line = Line::default();
        assert_eq!(line.seconds(Some(Instant::from_nanos(1_000_000_001))), "1.000000001");
        assert_eq!(line.seconds(Some(Instant::FAR)), "18446744073.709551614");
        assert_eq!(line.seconds(None), "");
    }
}
