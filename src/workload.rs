//! Which jobs arrive, and when: a pure function of the scenario and the seed.
//!
//! Arrivals are open loop: they do not wait for anything. Jobs are numbered in the order in which they arrive, over all groups, so that a job's
//! number, and with it its luck, is the same under every policy.

use std::time::Duration;

use rand_distr::{Distribution, Exp1};
use serde::Serialize;

use crate::job::JobId;
use crate::rng::{Seed, Stream};
use crate::time::{Instant, seconds};

/// Jobs of one type that arrive in one manner.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The job type, such as `email`.
    pub kind: String,
    /// How many jobs.
    pub count: u64,
    /// In what manner.
    pub arrival: Arrival,
    /// When the first may arrive, from the run's start.
    pub at: Duration,
    /// Higher is claimed first.
    pub priority: i16,
    /// Share of jobs whose payload is malformed and that can never succeed, 0 to 1.
    pub permanent: f64,
    /// Retries allowed.
    pub max_retries: u32,
}

/// In what manner jobs arrive.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "arrival", rename_all = "kebab-case")]
pub enum Arrival {
    /// All at the same instant.
    AtOnce,
    /// Evenly spaced.
    Constant {
        /// Jobs per second, above zero.
        rate: f64,
    },
    /// A Poisson process: independent, exponentially distributed gaps.
    Poisson {
        /// Jobs per second on average, above zero.
        rate: f64,
    },
    /// At recorded times after `at`, ascending; as many as the group's count.
    Trace {
        /// The times.
        #[serde(skip)]
        times: Vec<Duration>,
    },
}

/// One job's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// When.
    pub at: Instant,
    /// Its number.
    pub id: JobId,
    /// Index of its group.
    pub group: usize,
    /// Whether its payload is malformed.
    pub malformed: bool,
}

impl Job {
    /// What the job's handler gets, and sends: a small JSON object, cut short if the job is malformed.
    pub fn payload(&self) -> String {
        let end = if self.malformed { "" } else { "@example.com\"}" };
        format!("{{\"to\":\"customer-{}{end}", self.id)
    }
}

/// All jobs of a run in order of arrival; ties by group, then by place in the group.
pub fn jobs(groups: &[Group], seed: Seed) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::with_capacity(groups.iter().map(|group| group.count as usize).sum());
    for (group, settings) in groups.iter().enumerate() {
        jobs.extend(times(settings, group, seed).into_iter().map(|at| Job { at, id: JobId(0), group, malformed: false }));
    }
    jobs.sort_by_key(|job| job.at);
    for (job, id) in jobs.iter_mut().zip(1..) {
        job.id = JobId(id);
        job.malformed = seed.draw(Stream::Malformed, job.id, 0).happens(groups[job.group].permanent);
    }
    jobs
}

fn times(group: &Group, index: usize, seed: Seed) -> Vec<Instant> {
    let start = Instant::START + group.at;
    match &group.arrival {
        Arrival::AtOnce => vec![start; group.count as usize],
        Arrival::Constant { rate } => (0..group.count).map(|i| start + seconds(i as f64 / rate)).collect(),
        Arrival::Trace { times } => times.iter().map(|at| start + *at).collect(),
        Arrival::Poisson { rate } => {
            let mut draw = seed.draw(Stream::Arrival, JobId(index as u64), 0);
            let mut elapsed = 0.0;
            (0..group.count)
                .map(|_| {
                    let gap: f64 = Exp1.sample(&mut draw);
                    elapsed += gap / rate;
                    start + seconds(elapsed)
                })
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(count: u64, arrival: Arrival) -> Group {
        Group { kind: "email".into(), count, arrival, at: Duration::from_secs(1), priority: 0, permanent: 0.0, max_retries: 3 }
    }

    #[test]
    fn jobs_of_all_groups_are_numbered_in_order_of_arrival() {
        let groups =
            [group(3, Arrival::Constant { rate: 2.0 }), group(1, Arrival::Trace { times: vec![Duration::from_millis(750)] })];
        let all = jobs(&groups, Seed(1));
        let seen: Vec<(u64, u64, usize)> = all.iter().map(|job| (job.id.0, job.at.as_nanos() / 1_000_000, job.group)).collect();
        assert_eq!(seen, [(1, 1000, 0), (2, 1500, 0), (3, 1750, 1), (4, 2000, 0)]);
    }

    #[test]
    fn a_malformed_payload_is_seen_as_one() {
        let job = |malformed| Job { at: Instant::START, id: JobId(7), group: 0, malformed };
        for malformed in [false, true] {
            assert_eq!(crate::call::Call::new(JobId(7), 1, &job(malformed).payload()).malformed, malformed);
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential() {
        let all = jobs(&[group(10_000, Arrival::Poisson { rate: 100.0 })], Seed(4));
        let gaps: Vec<f64> = all.windows(2).map(|pair| pair[1].at.since(pair[0].at).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let sd = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean - 0.01).abs() < 0.0004, "{mean}");
        assert!((sd - 0.01).abs() < 0.0006, "{sd}");
    }

    #[test]
    fn the_permanent_share_is_met_and_repeats() {
        let mut group = group(5_000, Arrival::AtOnce);
        group.permanent = 0.1;
        let bad = |seed| jobs(std::slice::from_ref(&group), seed).iter().filter(|job| job.malformed).count();
        assert!((415..585).contains(&bad(Seed(9))), "{}", bad(Seed(9)));
        assert_eq!(bad(Seed(9)), bad(Seed(9)));
    }
}
