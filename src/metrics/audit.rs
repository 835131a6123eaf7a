//! What must hold of every run, whatever the policy and whatever befell it.
//!
//! Three witnesses, none of whom can see what the others wrote: the workers' attempts, the rows that the store was left with, and the calls
//! that the downstream took. What is checked:
//!
//! | check | breach |
//! |---|---|
//! | ledger | a job that was put in is missing from the store, is there twice, or was never put in |
//! | ends | a finished run leaves a job waiting or claimed; a terminal state that no attempt can have brought about, or more than one did |
//! | leases | one attempt made twice; a job taken from a live lease, or before a lost one can have run out; a job done again after its end |
//! | calls | a worker called for a job of which nothing is known; the downstream saw a call that no worker made, or more often; a worker had an answer that the downstream never gave; a job is completed without one |
//! | counts | the retries on a job's row are not those of its attempts; an attempt is missing, and no lease ran out |
//!
//! At least once is what a queue with leases can promise, so a call that was made again is no breach where the first one's lease was lost: it is
//! named by [`repeats`](super::repeats), with its cause. What a check can't know, it does not claim: a settlement whose answer was lost, with
//! the connection or with the worker, may have been carried out or not.
//!
//! The lease check reads two clocks, the run's and the store's; they may drift apart by [`SLACK`].

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::by_job::ByJob;
use super::chaos::is_orphan;
use super::{Attempt, Fate, JobRecord, RunRecord, Service};
use crate::call::Outcome;
use crate::job::{JobId, State};
use crate::time::{Instant, Window};

/// By how much the store's clock and the run's may disagree over the length of a lease.
const SLACK: Duration = Duration::from_millis(100);
/// More breaches than these say nothing that the first ones did not.
const MOST: usize = 50;

/// What an audit must know of a run.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The run was given the time to finish: no job may be left waiting or claimed.
    pub complete: bool,
    /// How long a claim is exclusive; `None` where an open transaction holds it, which ends with its connection.
    pub lease: Option<Duration>,
}

/// Checks a run's record against itself. Each breach is one sentence.
pub fn audit(record: &RunRecord, terms: Terms) -> Vec<String> {
    let (made, seen) = (ByJob::of(&record.attempts), ByJob::of(&record.services));
    let asked = Asked::of(record);
    let calm = record.blows.is_empty() && record.tally.store_failures == 0 && record.tally.returned + record.tally.reaped == 0;
    let mut breaches = Vec::new();
    let (mut attempts, mut services): (Vec<&Attempt>, Vec<&Service>) = (Vec::new(), Vec::new());
    let mut of_known = 0;
    for job in &record.jobs {
        attempts.clear();
        attempts.extend(made.of_job(job.job));
        attempts.sort_by_key(|attempt| (attempt.attempt, attempt.claimed));
        services.clear();
        services.extend(seen.of_job(job.job));
        services.sort_by_key(|service| service.attempt);
        of_known += attempts.len();
        breaches.extend(leases(&attempts, &asked, terms.lease));
        breaches.extend(ending(job, &attempts, terms.complete));
        breaches.extend(counts(job, &attempts, calm));
        // Without the downstream's log, nothing can be said.
        if !record.services.is_empty() {
            calls(job, &attempts, &services, &mut breaches);
        }
    }
    if of_known < record.attempts.len() {
        breaches.extend(strangers(record));
    }
    shortened(breaches)
}

/// Checks that the store holds each job that was put in, once, and nothing else. `stored` in any order; `all_in`: every one of `planned`
/// has been put in.
pub fn ledger(planned: &[JobId], stored: &[JobId], all_in: bool) -> Vec<String> {
    let mut times: BTreeMap<JobId, u32> = planned.iter().map(|job| (*job, 0)).collect();
    let mut breaches = Vec::new();
    for job in stored {
        match times.get_mut(job) {
            Some(times) => *times += 1,
            None => breaches.push(format!("the store holds job {job}, which was never put in")),
        }
    }
    for (job, times) in times {
        match times {
            0 if all_in => breaches.push(format!("job {job} was put in and is missing from the store")),
            0 | 1 => {}
            _ => breaches.push(format!("the store holds job {job} {times} times")),
        }
    }
    shortened(breaches)
}

fn shortened(mut breaches: Vec<String>) -> Vec<String> {
    if breaches.len() > MOST {
        let more = breaches.len() - MOST;
        breaches.truncate(MOST);
        breaches.push(format!("and {more} more breaches of the audit"));
    }
    breaches
}

/// When each claim was asked for, by when it was answered: a lease runs from some moment in between.
struct Asked(Vec<Window>);

impl Asked {
    fn of(record: &RunRecord) -> Asked {
        let mut windows = record.tally.claim_windows.clone();
        windows.sort_unstable_by_key(|window| (window.until, window.from));
        Asked(windows)
    }

    /// When the claim of this attempt was asked for, at the earliest.
    fn by(&self, attempt: &Attempt) -> Instant {
        let first = self.0.partition_point(|window| window.until < attempt.claimed);
        self.0.get(first).filter(|window| window.until == attempt.claimed).map_or(attempt.claimed, |window| window.from)
    }
}

/// One job's attempts, by number: each was made once, under a lease that nobody else held.
fn leases(attempts: &[&Attempt], asked: &Asked, lease: Option<Duration>) -> Option<String> {
    attempts.windows(2).find_map(|pair| {
        let (one, other) = (pair[0], pair[1]);
        let job = one.job;
        let ended = one.settled.filter(|_| matches!(one.fate, Fate::Completed | Fate::Discarded(_)));
        // A transaction that broke unnoticed: its worker stood still between the claim and the call.
        let unaware = |end: Instant| lease.is_none() && is_orphan(other) && asked.by(other) < end;
        if ended.is_some_and(|end| !unaware(end)) {
            return Some(format!(
                "job {job} was called for again by worker {} after attempt {} had ended it",
                other.worker, one.attempt
            ));
        }
        // A transaction that broke was rolled back, and its attempt with it.
        if one.attempt == other.attempt && (lease.is_some() || !(is_orphan(one) || is_orphan(other))) {
            let workers = (one.worker, other.worker);
            return Some(format!("attempt {} of job {job} was made by workers {} and {}", one.attempt, workers.0, workers.1));
        }
        // A settlement's answer may come late, and the next claim before it: the numbers tell that it was carried out. One that may have
        // been sent, and whose answer was lost, tells nothing.
        let taken = one.fate == Fate::Lost || (is_orphan(one) && one.answered.is_none());
        let early = || lease.is_some_and(|lease| other.claimed + SLACK < asked.by(one) + lease);
        (taken && early())
            .then(|| format!("worker {} took job {job} from worker {}, whose lease can't have run out", other.worker, one.worker))
    })
}

/// A job's end is one that its attempts can have brought about, and none is left without one.
fn ending(job: &JobRecord, attempts: &[&Attempt], complete: bool) -> Option<String> {
    let (number, state) = (job.job, job.state);
    let confirmed = |attempt: &&&Attempt| attempt.settled.is_some();
    let completed = attempts.iter().filter(confirmed).filter(|attempt| attempt.fate == Fate::Completed).count();
    let discarded = attempts.iter().filter(confirmed).filter(|attempt| matches!(attempt.fate, Fate::Discarded(_))).count();
    // What nobody was told may have been carried out; a completing one needs a good answer first.
    let unsure = attempts.iter().any(|attempt| is_orphan(attempt) && attempt.outcome == Some(Outcome::Ok));
    match (state, completed, discarded) {
        (State::Completed, 1, 0) => None,
        (State::Completed, 0, 0) if unsure => None,
        // A job whose last lease ran out is given up by a reaper.
        (State::Discarded, 0, 0 | 1) => None,
        (State::Available | State::Running | State::Retryable, 0, 0) if complete => {
            let left = if state == State::Running { "still claimed".to_owned() } else { format!("still {}", state.name()) };
            Some(format!("job {number} is {left} after the run"))
        }
        (State::Available | State::Running | State::Retryable, 0, 0) => None,
        (_, completed, discarded) => {
            Some(format!("job {number} is {} after {completed} completing and {discarded} discarding attempts", state.name()))
        }
    }
}

/// The retries on the row are those that the attempts made of it.
fn counts(job: &JobRecord, attempts: &[&Attempt], calm: bool) -> Option<String> {
    // Its attempts may have left the record with the run's end.
    job.last_due?;
    let (number, retries) = (job.job, job.retries);
    let confirmed = attempts.iter().find(|attempt| {
        attempt.settled.is_some() && matches!(attempt.fate, Fate::Completed | Fate::Discarded(_)) && job.state.is_terminal()
    });
    if let Some(last) = confirmed.filter(|last| last.attempt != retries + 1) {
        return Some(format!("job {number} ended with attempt {}, and its row says {retries} retries", last.attempt));
    }
    let last = attempts.last()?.attempt;
    if last > retries + 1 {
        return Some(format!("job {number} had an attempt {last}, and its row says {retries} retries"));
    }
    let missing = (1..last).find(|n| attempts.binary_search_by_key(n, |attempt| attempt.attempt).is_err());
    missing.filter(|_| calm).map(|n| format!("attempt {n} of job {number} was never made, and no lease had run out"))
}

/// What the workers called for a job is what the downstream saw of it. Both are in order of the attempts' numbers.
fn calls(job: &JobRecord, attempts: &[&Attempt], services: &[&Service], breaches: &mut Vec<String>) {
    let number = job.job;
    for calls in services.chunk_by(|one, other| one.attempt == other.attempt) {
        let (attempt, times) = (calls[0].attempt, calls.len());
        let first = attempts.partition_point(|made| made.attempt < attempt);
        let made = attempts[first..].iter().take_while(|made| made.attempt == attempt).count();
        if made == 0 {
            breaches.push(format!("the downstream saw attempt {attempt} of job {number}, which no worker made"));
        } else if times > made {
            breaches.push(format!(
                "the downstream saw attempt {attempt} of job {number} {times} times, and it was made {made} times"
            ));
        }
    }
    let answered = |attempt: &&&Attempt| matches!(attempt.outcome, Some(Outcome::Ok | Outcome::Status { .. }));
    for made in attempts.chunk_by(|one, other| one.attempt == other.attempt) {
        let unseen = || services.binary_search_by_key(&made[0].attempt, |service| service.attempt).is_err();
        if let Some(Attempt { worker, attempt, .. }) = made.iter().rfind(answered).filter(|_| unseen()) {
            breaches.push(format!(
                "worker {worker} had an answer for attempt {attempt} of job {number}, which the downstream never saw"
            ));
        }
    }
    if job.state == State::Completed && !services.iter().any(|service| service.outcome == Some(Outcome::Ok)) {
        breaches.push(format!("job {number} is completed, and the downstream never answered it well"));
    }
}

/// Attempts at jobs of which the record knows nothing.
fn strangers(record: &RunRecord) -> impl Iterator<Item = String> {
    let is_known = |attempt: &&Attempt| record.jobs.binary_search_by_key(&attempt.job, |job| job.job).is_ok();
    let unknown = record.attempts.iter().filter(move |attempt| !is_known(attempt));
    unknown.map(|attempt| format!("worker {} called for job {}, of which nothing is known", attempt.worker, attempt.job))
}
