//! Attempts and calls found by their job: an index of numbers beside the list, so that millions take no map of maps.

use super::{Attempt, Service};
use crate::job::JobId;

/// Something of one job's.
pub(super) trait OfJob {
    /// Whose.
    fn job(&self) -> JobId;
}

impl OfJob for Attempt {
    fn job(&self) -> JobId {
        self.job
    }
}

impl OfJob for Service {
    fn job(&self) -> JobId {
        self.job
    }
}

/// An index of a list.
#[derive(Debug)]
pub(super) struct ByJob<'a, T> {
    list: &'a [T],
    /// Jobs' numbers in ascending order, where they are too far apart to be places themselves.
    names: Option<Vec<JobId>>,
    /// Where each job's places begin in `order`, and where the last one's end.
    first: Vec<u32>,
    /// Places in the list, job by job.
    order: Vec<u32>,
}

impl<'a, T: OfJob> ByJob<'a, T> {
    /// Of fewer than four thousand million things.
    pub(super) fn of(list: &'a [T]) -> ByJob<'a, T> {
        let most = list.iter().map(|one| one.job().0).max().map_or(0, |most| most.saturating_add(1));
        let names = (most > 1024 + 8 * list.len() as u64).then(|| {
            let mut names: Vec<JobId> = list.iter().map(OfJob::job).collect();
            names.sort_unstable();
            names.dedup();
            names
        });
        let jobs = names.as_ref().map_or(most as usize, Vec::len);
        let mut index = ByJob { list, names, first: vec![0; jobs + 1], order: vec![0; list.len()] };
        for one in list {
            let job = index.place(one.job()).unwrap_or_default();
            index.first[job] += 1;
        }
        // From counts to ends, and then backwards to begins.
        let mut end = 0;
        for first in &mut index.first {
            end += *first;
            *first = end;
        }
        for (place, one) in list.iter().enumerate().rev() {
            let job = index.place(one.job()).unwrap_or_default();
            index.first[job] -= 1;
            index.order[index.first[job] as usize] = place as u32;
        }
        index
    }

    /// What is of this job, in the order of the list.
    pub(super) fn of_job(&self, job: JobId) -> impl DoubleEndedIterator<Item = &'a T> + '_ {
        let places = self.place(job).map_or(&[][..], |job| &self.order[self.first[job] as usize..self.first[job + 1] as usize]);
        places.iter().map(|place| &self.list[*place as usize])
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
            let numbers = |job: u64| index.of_job(JobId(job * far)).map(|attempt| attempt.attempt).collect::<Vec<u32>>();
            assert_eq!([numbers(1), numbers(3), numbers(7)], [vec![1], vec![1, 2, 3], vec![1]]);
            assert!([0, 2, 8, 9].into_iter().all(|job| numbers(job).is_empty()));
        }
        assert_eq!(ByJob::<Attempt>::of(&[]).of_job(JobId(0)).count(), 0);
    }
}
