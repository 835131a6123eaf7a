//! What must hold of every run, whatever the policy: nothing lost, nothing held twice, nothing in limbo.

use super::by_job::ByJob;
use super::{Attempt, Fate, RunRecord};
use crate::job::{JobId, State, Why};

/// Checks a run's record against itself: the attempts that the workers saw, and the rows that the store was left with. Each breach
/// is one sentence. `complete`: the run was given the time to finish; then no job may be left running.
pub fn audit(record: &RunRecord, complete: bool) -> Vec<String> {
    let mut breaches = Vec::new();
    let by_job = ByJob::of(&record.attempts);
    let mut attempts: Vec<&Attempt> = Vec::new();
    for job in &record.jobs {
        attempts.clear();
        attempts.extend(by_job.attempts(job.job));
        attempts.sort_by_key(|attempt| (attempt.claimed, attempt.attempt));
        breaches.extend(overlap(&attempts));
        breaches.extend(ending(job.job, job.state, &attempts));
        if complete && job.state == State::Running {
            breaches.push(format!("job {} is still claimed after the run", job.job));
        }
    }
    breaches
}

/// Two attempts at one job at the same time, neither of which had lost its lease.
fn overlap(attempts: &[&Attempt]) -> Option<String> {
    let mut held = attempts.iter().filter(|attempt| attempt.fate != Fate::Lost);
    let mut last = held.next()?;
    for next in held {
        if last.settled.is_some_and(|settled| next.claimed < settled) && both_owned(last, next) {
            return Some(format!("job {} was held by workers {} and {} at the same time", last.job, last.worker, next.worker));
        }
        last = next;
    }
    None
}

/// A settlement's answer may reach its worker after the next owner's claim did; the attempt numbers tell the two apart, since only a
/// settled or expired claim lets the number grow.
fn both_owned(last: &Attempt, next: &Attempt) -> bool {
    last.attempt >= next.attempt
}

/// A terminal state that no attempt, or more than one, brought about.
fn ending(job: JobId, state: State, attempts: &[&Attempt]) -> Option<String> {
    let completed = attempts.iter().filter(|attempt| attempt.fate == Fate::Completed && attempt.settled.is_some()).count();
    let discarded =
        attempts.iter().filter(|a| matches!(a.fate, Fate::Discarded(Why::Permanent | Why::Exhausted)) && a.settled.is_some());
    match (state, completed, discarded.count()) {
        (State::Completed, 1, 0) | (State::Discarded, 0, 0 | 1) => None,
        // An attempt that is counted as lost because the connection broke may have been committed before it did.
        (State::Completed, 0, 0) if attempts.iter().any(|attempt| attempt.fate == Fate::Lost) => None,
        (State::Available | State::Running | State::Retryable, 0, 0) => None,
        (_, completed, discarded) => {
            Some(format!("job {job} is {} after {completed} completing and {discarded} discarding attempts", state.name()))
        }
    }
}
