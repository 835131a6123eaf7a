//! Attempts found by their job: an index of numbers beside the list, so that millions take no map of maps.

use super::Attempt;
use crate::job::JobId;

/// An index of a list of attempts.
#[derive(Debug)]
pub(super) struct ByJob<'a> {
    attempts: &'a [Attempt],
    /// Jobs' numbers in ascending order, where they are too far apart to be places themselves.
    names: Option<Vec<JobId>>,
    /// Where each job's places begin in `order`, and where the last one's end.
    first: Vec<u32>,
    /// Places in the list, job by job.
    order: Vec<u32>,
}

impl<'a> ByJob<'a> {
    /// Of fewer than four thousand million attempts.
    pub(super) fn of(attempts: &'a [Attempt]) -> ByJob<'a> {
        let most = attempts.iter().map(|attempt| attempt.job.0).max().map_or(0, |most| most.saturating_add(1));
        let names = (most > 1024 + 8 * attempts.len() as u64).then(|| {
            let mut names: Vec<JobId> = attempts.iter().map(|attempt| attempt.job).collect();
            names.sort_unstable();
            names.dedup();
            names
        });
        let jobs = names.as_ref().map_or(most as usize, Vec::len);
        let mut index = ByJob { attempts, names, first: vec![0; jobs + 1], order: vec![0; attempts.len()] };
        for attempt in attempts {
            let job = index.place(attempt.job).unwrap_or_default();
            index.first[job] += 1;
        }
        // From counts to ends, and then backwards to begins.
        let mut end = 0;
        for first in &mut index.first {
            end += *first;
            *first = end;
        }
        for (place, attempt) in attempts.iter().enumerate().rev() {
            let job = index.place(attempt.job).unwrap_or_default();
            index.first[job] -= 1;
            index.order[index.first[job] as usize] = place as u32;
        }
        index
    }

    /// A job's attempts, in the order of the list.
    pub(super) fn attempts(&self, job: JobId) -> impl DoubleEndedIterator<Item = &'a Attempt> + '_ {
        let places = self.place(job).map_or(&[][..], |job| &self.order[self.first[job] as usize..self.first[job + 1] as usize]);
        places.iter().map(|place| &self.attempts[*place as usize])
    }

    fn place(&self, job: JobId) -> Option<usize> {
        match &self.names {
            Some(names) => names.binary_search(&job).ok(),
            None => Some(job.0 as usize).filter(|job| job + 1 < self.first.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Fate;
    use crate::time::Instant;

    fn attempt(job: u64, attempt: u32, fate: Fate) -> Attempt {
        let at = Instant::from_nanos(u64::from(attempt));
        let (job, settled) = (JobId(job), Some(at));
        Attempt { job, attempt, worker: 0, due: at, claimed: at, sent: at, answered: None, settled, outcome: None, fate }
    }

    #[test]
    fn every_job_finds_its_attempts_in_their_order_however_jobs_are_numbered() {
        for far in [1, 1 << 40] {
            let list: Vec<Attempt> =
                [(3, 1), (1, 1), (3, 2), (7, 1), (3, 3)].map(|(job, n)| attempt(job * far, n, Fate::Open)).into();
            let index = ByJob::of(&list);
            let numbers = |job: u64| index.attempts(JobId(job * far)).map(|attempt| attempt.attempt).collect::<Vec<u32>>();
            assert_eq!([numbers(1), numbers(3), numbers(7)], [vec![1], vec![1, 2, 3], vec![1]]);
            assert!([0, 2, 8, 9].into_iter().all(|job| numbers(job).is_empty()));
        }
        assert_eq!(ByJob::of(&[]).attempts(JobId(0)).count(), 0);
    }
}
