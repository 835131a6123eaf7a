//! What must hold of every run, whatever the policy: nothing lost, nothing held twice, nothing in limbo.

use std::collections::BTreeMap;

use super::{Attempt, Fate, RunRecord};
use crate::job::{JobId, State, Why};

/// Checks a run's record against itself: the attempts that the workers saw, and the rows that the store was left with. Each breach
/// is one sentence. `complete`: the run was given the time to finish; then no job may be left running.
pub fn audit(record: &RunRecord, complete: bool) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut by_job: BTreeMap<JobId, Vec<&Attempt>> = BTreeMap::new();
    for attempt in &record.attempts {
        by_job.entry(attempt.job).or_default().push(attempt);
    }
    for attempts in by_job.values_mut() {
        attempts.sort_by_key(|attempt| (attempt.claimed, attempt.attempt));
        breaches.extend(overlap(attempts));
    }
    for job in &record.jobs {
        let attempts = by_job.get(&job.job).map_or(&[][..], |attempts| attempts);
        breaches.extend(ending(job.job, job.state, attempts));
        if complete && job.state == State::Running {
            breaches.push(format!("job {} is still claimed after the run", job.job));
        }
    }
    breaches
}

/// Two attempts at one job at the same time, neither of which had lost its lease.
fn overlap(attempts: &[&Attempt]) -> Option<String> {
    let held: Vec<&&Attempt> = attempts.iter().filter(|attempt| attempt.fate != Fate::Lost).collect();
    let pair =
        held.windows(2).find(|pair| pair[0].settled.is_some_and(|settled| pair[1].claimed < settled) && both_owned(pair))?;
    Some(format!("job {} was held by workers {} and {} at the same time", pair[0].job, pair[0].worker, pair[1].worker))
}

/// A settlement's answer may reach its worker after the next owner's claim did; the attempt numbers tell the two apart, since only a
/// settled or expired claim lets the number grow.
fn both_owned(pair: &[&&Attempt]) -> bool {
    pair[0].attempt >= pair[1].attempt
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
