//! The figures of one run, folded from its record.
//!
//! Everything here is folded from a [`RunRecord`]; nothing is measured here. Times are counted from the first arrival. A job
//! that did not complete has no completion time: it ranks last and is never dropped, so that a policy which loses jobs
//! cannot look fast.

use std::collections::BTreeSet;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::aftermath::wasted_share;
use super::chaos::{longest_stall, repeats};
use super::limit::limit;
use super::{Aftermath, Attempt, JobRecord, Limit, Peak, RunRecord, UserFigures, busiest_window, histogram, record};
use crate::call::Outcome;
use crate::job::{JobId, State, Why};
use crate::scenario::Scenario;
use crate::time::{Instant, Window};

/// What a fold must be told of the scenario.
#[derive(Clone, Debug)]
pub struct Lens {
    /// Length of the stampede window.
    pub stampede_window: Duration,
    /// The outages, in order of time.
    pub outages: Vec<Window>,
    /// The number of workers.
    pub workers: u64,
    /// Attempts that all workers together can have under way.
    pub slots: u64,
    /// How long a job's caller waits for an answer.
    pub client_timeout: Duration,
    /// Calls that the downstream can complete in a second when all is well.
    pub capacity: f64,
}

impl Lens {
    /// That of this scenario.
    pub fn of(scenario: &Scenario) -> Lens {
        let workers = &scenario.workers;
        Lens {
            stampede_window: scenario.stampede_window,
            outages: scenario.spells().iter().map(|outage| outage.window).collect(),
            workers: u64::from(workers.count),
            slots: u64::from(workers.count) * u64::from(workers.slots),
            client_timeout: scenario.downstream.client_timeout,
            capacity: scenario.downstream.capacity(),
        }
    }
}

/// How many jobs came to what end. `completed + permanent + exhausted + unfinished = jobs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Jobs that arrived, or should have.
    pub jobs: u64,
    /// Completed.
    pub completed: u64,
    /// Discarded because the failure was permanent.
    pub permanent: u64,
    /// Discarded because the retries were spent: lost to the outage.
    pub exhausted: u64,
    /// Not in a terminal state when the run ended.
    pub unfinished: u64,
    /// Of all jobs, those with a malformed payload, which no policy can complete.
    pub malformed: u64,
}

impl Counts {
    /// Discarded for whatever reason.
    pub fn discarded(&self) -> u64 {
        self.permanent + self.exhausted
    }

    /// Jobs that could have been completed and were not.
    pub fn lost(&self) -> u64 {
        (self.jobs - self.malformed).saturating_sub(self.completed)
    }
}

/// Percentiles of a duration, in milliseconds, from an HDR histogram with 3 significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// How many values.
    pub count: u64,
    /// Median.
    pub p50_ms: f64,
    /// 90 %.
    pub p90_ms: f64,
    /// 99 %.
    pub p99_ms: f64,
    /// The greatest.
    pub max_ms: f64,
}

/// The figures of one policy's run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Jobs by their end.
    pub counts: Counts,
    /// Calls sent to the downstream.
    pub requests: u64,
    /// Calls per job.
    pub amplification: f64,
    /// Calls sent inside an outage window that failed.
    pub wasted_requests: u64,
    /// Calls for jobs with a malformed payload, which no policy can complete.
    pub malformed_requests: u64,
    /// Busiest stampede window over all calls.
    pub stampede_peak: Peak,
    /// Busiest stampede window over first attempts.
    pub first_peak: Peak,
    /// Busiest stampede window over retries.
    pub retry_peak: Peak,
    /// Busiest stampede window over calls sent after an outage's end and before the next outage; `None` without an outage.
    pub recovery_peak: Option<Peak>,
    /// The stampede peak over the mean number of calls in a window of that length, first arrival to last settlement.
    pub peak_over_mean: Option<f64>,
    /// Time until 50 % of all jobs that can be completed were; `None` if they never were.
    pub completion_p50: Option<Duration>,
    /// Time until 90 % of them were completed.
    pub completion_p90: Option<Duration>,
    /// Time until 99 % of them were completed.
    pub completion_p99: Option<Duration>,
    /// Time until all of them were completed.
    pub completion_p100: Option<Duration>,
    /// First arrival to last settlement; `None` while jobs are unfinished.
    pub makespan: Option<Duration>,
    /// From the end of the last outage until every job that had arrived by then was completed, malformed ones aside: until the
    /// backlog that it built is gone. `None` without an outage, or if some never was.
    pub time_to_recover: Option<Duration>,
    /// Call sent to answer.
    pub latency: Percentiles,
    /// Arrival to completion, of completed jobs.
    pub job_time: Percentiles,
    /// Due to claimed.
    pub schedule_lag: Percentiles,
    /// Claim asked for to claim answered.
    pub claim_latency: Percentiles,
    /// Settlement asked for to settlement confirmed.
    pub settle_latency: Percentiles,
    /// Claim statements sent.
    pub claims: u64,
    /// Claims that found nothing.
    pub empty_claims: u64,
    /// Transactions committed or rolled back for the workers.
    pub transactions: u64,
    /// Attempts whose lease had been lost.
    pub lost_leases: u64,
    /// Calls that had to be made again, since the store never heard how they ended.
    pub repeated_calls: u64,
    /// Operations of the store that failed.
    pub store_failures: u64,
    /// The longest time without a settlement that followed a blow of chaos; `None` without one.
    pub longest_stall: Option<Duration>,
    /// Calls that reached the downstream, as it counted them; a refused or timed-out connection does not.
    pub arrivals_at_downstream: u64,
    /// The share of the downstream's work whose callers had given up when it was done; `None` if nothing is known of it.
    pub wasted_work: Option<f64>,
    /// What came after the last outage; `None` without one.
    pub aftermath: Option<Aftermath>,
    /// What ordinary users saw; `None` without any.
    pub users: Option<UserFigures>,
    /// What bounded the request rate.
    pub limit: Limit,
    /// One sentence on how that was found, with figures.
    pub limit_evidence: String,
}

impl Summary {
    /// Folds a run's record.
    pub fn of(record: &RunRecord, lens: &Lens) -> Summary {
        let counts = counts(&record.jobs);
        let sent: Vec<Instant> = record.attempts.iter().map(|attempt| attempt.sent).collect();
        let only = |keep: fn(&Attempt) -> bool| -> Vec<Instant> {
            record.attempts.iter().filter(|attempt| keep(attempt)).map(|attempt| attempt.sent).collect()
        };
        let peak = |times: &[Instant]| busiest_window(times, lens.stampede_window);
        let stampede_peak = peak(&sent);
        let first_arrival = record.jobs.iter().map(|job| job.arrived).min().unwrap_or_default();
        let completions = completions(&record.jobs, first_arrival);
        let completable = counts.jobs - counts.malformed;
        let completed_by = |share: f64| quantile(&completions, completable, share);
        let (limit, limit_evidence) = limit(record, lens.workers, lens.slots);
        Summary {
            requests: sent.len() as u64,
            amplification: sent.len() as f64 / counts.jobs.max(1) as f64,
            wasted_requests: wasted(&record.attempts, &lens.outages),
            malformed_requests: malformed_requests(record),
            stampede_peak,
            first_peak: peak(&only(|attempt| attempt.attempt == 1)),
            retry_peak: peak(&only(|attempt| attempt.attempt > 1)),
            recovery_peak: recovery_peak(&sent, lens),
            peak_over_mean: peak_over_mean(stampede_peak, &sent, record.ended.since(first_arrival), lens.stampede_window),
            completion_p50: completed_by(0.5),
            completion_p90: completed_by(0.9),
            completion_p99: completed_by(0.99),
            completion_p100: completed_by(1.0),
            makespan: makespan(&record.jobs, first_arrival),
            time_to_recover: time_to_recover(&record.jobs, lens),
            latency: spread(record.attempts.iter().filter_map(|a| Some(a.answered?.since(a.sent)))),
            job_time: spread(
                record.jobs.iter().filter(|j| j.state == State::Completed).filter_map(|j| Some(j.finished?.since(j.arrived))),
            ),
            schedule_lag: spread(record.attempts.iter().map(|a| a.claimed.since(a.due))),
            claim_latency: Percentiles::of(&record.tally.claim_latency),
            settle_latency: Percentiles::of(&record.tally.settle_latency),
            claims: record.tally.claims,
            empty_claims: record.tally.empty_claims,
            transactions: record.transactions,
            // A lease that ran out is taken away by a reaper and, where its worker lives, settled in vain: one and the same.
            lost_leases: record.tally.lost.max(record.tally.returned + record.tally.reaped),
            repeated_calls: repeats(record).len() as u64,
            store_failures: record.tally.store_failures,
            longest_stall: longest_stall(record),
            arrivals_at_downstream: record.arrivals_at_downstream,
            wasted_work: wasted_share(record, None),
            aftermath: Aftermath::of(record, lens),
            users: UserFigures::of(&record.users, &lens.outages),
            limit,
            limit_evidence,
            counts,
        }
    }
}

impl Percentiles {
    /// Percentiles of a histogram of microseconds.
    pub fn of(histogram: &Histogram<u64>) -> Percentiles {
        let ms = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Percentiles {
            count: histogram.len(),
            p50_ms: ms(0.5),
            p90_ms: ms(0.9),
            p99_ms: ms(0.99),
            max_ms: histogram.max() as f64 / 1e3,
        }
    }
}

fn spread(durations: impl Iterator<Item = Duration>) -> Percentiles {
    let mut histogram = histogram();
    durations.for_each(|duration| record(&mut histogram, duration));
    Percentiles::of(&histogram)
}

fn counts(jobs: &[JobRecord]) -> Counts {
    let mut counts = Counts { jobs: jobs.len() as u64, ..Counts::default() };
    for job in jobs {
        counts.malformed += u64::from(job.malformed);
        match (job.state, job.why) {
            (State::Completed, _) => counts.completed += 1,
            (State::Discarded, Some(Why::Permanent)) => counts.permanent += 1,
            (State::Discarded, _) => counts.exhausted += 1,
            (State::Available | State::Running | State::Retryable, _) => counts.unfinished += 1,
        }
    }
    counts
}

/// Calls sent inside an outage that failed.
fn wasted(attempts: &[Attempt], outages: &[Window]) -> u64 {
    let failed = |attempt: &&Attempt| attempt.outcome.is_some_and(|outcome| outcome != Outcome::Ok);
    let within = |attempt: &&Attempt| outages.iter().any(|outage| outage.contains(attempt.sent));
    attempts.iter().filter(failed).filter(within).count() as u64
}

fn malformed_requests(record: &RunRecord) -> u64 {
    let malformed: BTreeSet<JobId> = record.jobs.iter().filter(|job| job.malformed).map(|job| job.job).collect();
    if malformed.is_empty() {
        return 0;
    }
    record.attempts.iter().filter(|attempt| malformed.contains(&attempt.job)).count() as u64
}

/// The busiest window among those that lie between outages, after the first of them.
fn recovery_peak(sent: &[Instant], lens: &Lens) -> Option<Peak> {
    let edges = lens.outages.iter().enumerate().map(|(i, outage)| {
        let next = lens.outages.get(i + 1).map_or(Instant::FAR, |next| next.from);
        let from = sent.partition_point(|at| *at < outage.until);
        let until = sent.partition_point(|at| *at < next);
        busiest_window(sent.get(from..until).unwrap_or_default(), lens.stampede_window)
    });
    edges.max_by_key(|peak| (peak.calls, std::cmp::Reverse(peak.at)))
}

fn peak_over_mean(peak: Peak, sent: &[Instant], span: Duration, window: Duration) -> Option<f64> {
    let windows = span.as_secs_f64() / window.as_secs_f64();
    let mean = sent.len() as f64 / windows.max(1.0);
    (mean > 0.0).then(|| peak.calls as f64 / mean)
}

/// Times from the first arrival to each completion, ascending.
fn completions(jobs: &[JobRecord], first_arrival: Instant) -> Vec<Duration> {
    let completed = jobs.iter().filter(|job| job.state == State::Completed);
    let mut times: Vec<Duration> = completed.filter_map(|job| Some(job.finished?.since(first_arrival))).collect();
    times.sort_unstable();
    times
}

/// The time by which a share of `all` was done; the missing rank last.
fn quantile(times: &[Duration], all: u64, share: f64) -> Option<Duration> {
    let rank = (all as f64 * share).ceil() as usize;
    times.get(rank.checked_sub(1)?).copied()
}

fn makespan(jobs: &[JobRecord], first_arrival: Instant) -> Option<Duration> {
    let unfinished = jobs.iter().any(|job| !job.state.is_terminal());
    let last = jobs.iter().filter_map(|job| job.finished).max()?;
    (!unfinished).then(|| last.since(first_arrival))
}

fn time_to_recover(jobs: &[JobRecord], lens: &Lens) -> Option<Duration> {
    let end = lens.outages.last()?.until;
    let backlog = jobs.iter().filter(|job| job.arrived < end && !job.malformed);
    let completions = backlog.map(|job| job.finished.filter(|_| job.state == State::Completed));
    let last = completions.collect::<Option<Vec<Instant>>>()?.into_iter().max();
    Some(last.unwrap_or(end).since(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Fate;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn job(id: u64, arrived: u64, finished: Option<u64>, state: State) -> JobRecord {
        let why = (state == State::Discarded).then_some(Why::Exhausted);
        let (arrived, finished) = (at(arrived), finished.map(at));
        JobRecord { job: JobId(id), group: 0, arrived, malformed: false, state, why, retries: 0, last_due: None, finished }
    }

    fn attempt(job: u64, n: u32, sent: u64, outcome: Outcome) -> Attempt {
        Attempt {
            job: JobId(job),
            attempt: n,
            worker: 0,
            due: at(sent),
            claimed: at(sent),
            sent: at(sent),
            answered: Some(at(sent + 5)),
            settled: Some(at(sent + 6)),
            outcome: Some(outcome),
            fate: Fate::Completed,
        }
    }

    fn lens(outages: &[(u64, u64)]) -> Lens {
        let outages = outages.iter().map(|(from, until)| Window { from: at(*from), until: at(*until) }).collect();
        Lens {
            stampede_window: Duration::from_millis(100),
            outages,
            workers: 1,
            slots: 4,
            client_timeout: Duration::from_secs(1),
            capacity: 100.0,
        }
    }

    #[test]
    fn a_policy_that_loses_jobs_has_no_completion_time_for_them() {
        let jobs = vec![job(1, 0, Some(10), State::Completed), job(2, 0, Some(5), State::Discarded)];
        let record = RunRecord { jobs, ended: at(10), ..RunRecord::default() };
        let summary = Summary::of(&record, &lens(&[(0, 4)]));
        assert_eq!(summary.completion_p50, Some(Duration::from_millis(10)));
        assert_eq!(summary.completion_p99, None);
        assert_eq!((summary.counts.lost(), summary.counts.exhausted), (1, 1));
        assert_eq!(summary.makespan, Some(Duration::from_millis(10)));
    }

    #[test]
    fn an_outage_is_over_when_what_it_held_up_is_done_and_for_a_loser_never() {
        let with = |last: JobRecord| {
            let jobs = vec![job(1, 0, Some(600), State::Completed), last, job(9, 550, Some(900), State::Completed)];
            Summary::of(&RunRecord { jobs, ended: at(900), ..RunRecord::default() }, &lens(&[(100, 500)])).time_to_recover
        };
        assert_eq!(with(job(2, 450, Some(730), State::Completed)), Some(Duration::from_millis(230)));
        assert_eq!(with(job(2, 450, Some(470), State::Discarded)), None);
        assert_eq!(
            with(JobRecord { malformed: true, ..job(2, 450, Some(470), State::Discarded) }),
            Some(Duration::from_millis(100))
        );
    }

    #[test]
    fn peaks_are_told_apart_and_the_recovery_peak_lies_after_the_outage() {
        let fail = Outcome::status(503);
        let mut attempts: Vec<Attempt> = (1..=5).map(|id| attempt(id, 1, 200, fail)).collect();
        attempts.extend((1..=5).map(|id| attempt(id, 2, 250, fail)));
        attempts.extend((1..=3).map(|id| attempt(id, 3, 600, Outcome::Ok)));
        let summary = Summary::of(&RunRecord { attempts, ended: at(700), ..RunRecord::default() }, &lens(&[(100, 500)]));
        let calls = |peak: Peak| peak.calls;
        assert_eq!(calls(summary.stampede_peak), 10);
        assert_eq!((calls(summary.first_peak), calls(summary.retry_peak)), (5, 5));
        assert_eq!(summary.recovery_peak, Some(Peak { calls: 3, at: at(600) }));
        assert_eq!(summary.wasted_requests, 10);
    }

    #[test]
    fn percentiles_reach_as_far_as_the_durations_do() {
        let long = spread([1, 2_000, 3_600_000].map(Duration::from_millis).into_iter());
        assert_eq!(long.count, 3);
        assert!((long.max_ms - 3_600_000.0).abs() < 3_600.0 && (long.p50_ms - 2_000.0).abs() < 2.0, "{long:?}");
    }

    #[test]
    fn nothing_at_all_has_no_figures_and_no_panic() {
        let summary = Summary::of(&RunRecord::default(), &lens(&[]));
        assert_eq!((summary.requests, summary.makespan, summary.recovery_peak), (0, None, None));
        assert_eq!(summary.peak_over_mean, None);
    }
}
