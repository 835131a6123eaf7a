//! What chaos did to a run: the blows as they fell, the calls that had to be made again, and what each blow cost.
//!
//! A store that survives its workers gives a job to somebody else when a lease has run out, and can't know whether the first call was made:
//! at least once, not exactly once. Such a call is a *repeat*, and here each has a name and a cause:
//!
//! | cause | what became of the first call |
//! |---|---|
//! | `killed` | its worker died with it under way, or before the store had confirmed its settlement |
//! | `paused` | its worker stood still past the lease; what it settled later was refused |
//! | `database` | the database was away or the connection was cut, until the lease had run out |
//! | `expired` | the lease ran out, and none of this is known to be why |
//!
//! Costs are told from the record alone. A failed operation of the store counts for the last blow against the database before it, and the
//! time without progress is the longest between two settlements that the store confirmed, from the blow on and while it lasted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Attempt, Fate, JobRecord, RunRecord};
use crate::job::JobId;
use crate::scenario::chaos::{Strike, What};
use crate::time::Instant;

/// A blow as it fell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blow {
    /// The word for it, as scenarios write it.
    pub what: &'static str,
    /// Whom it is aimed at.
    pub target: Target,
    /// When it fell.
    pub at: Instant,
    /// When it was over; `None` if it was for a moment or for good, or the run ended first.
    pub until: Option<Instant>,
    /// The workers that it hit, by their numbers.
    pub workers: Vec<u32>,
    /// How many workers, connections, servers or snapshots it hit; 0: it fell on nobody.
    pub hit: u64,
    /// Why it did not do what it should.
    pub failed: Option<String>,
}

impl Blow {
    /// One that falls now; whom it hits, and until when, is still to be seen.
    pub fn of(strike: &Strike, at: Instant) -> Blow {
        let target = match strike.what {
            What::KillWorkers { .. } => Target::Lives,
            What::PauseWorkers { .. } => Target::Pace,
            What::CutConnections | What::RestartDatabase { .. } => Target::Database,
            What::HoldTransaction { .. } | What::SkewClock { .. } => Target::Nobody,
        };
        Blow { what: strike.what.name(), target, at, until: None, workers: vec![], hit: 0, failed: None }
    }
}

/// Whom a blow is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Workers die.
    Lives,
    /// Workers stand still.
    Pace,
    /// The database, or the way to it.
    Database,
    /// Nobody's work: nothing may come of it.
    Nobody,
}

/// Why a call was made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its worker was killed.
    Killed,
    /// Its worker was paused past the lease.
    Paused,
    /// The database was away.
    Database,
    /// The lease ran out.
    Expired,
}

/// A call whose end the store never heard of, so that the job was called for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The job.
    pub job: JobId,
    /// The attempt that was in vain.
    pub attempt: u32,
    /// Whose it was.
    pub worker: u32,
    /// When it had been sent.
    pub sent: Instant,
    /// Why.
    pub cause: Cause,
    /// The blow that is the cause, by its place in the record.
    pub blow: Option<usize>,
}

/// What a blow cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Attempts whose lease was lost through it.
    pub lost_leases: u64,
    /// Calls that were made again.
    pub repeats: u64,
    /// Operations of the store that failed.
    pub store_failures: u64,
    /// The longest time without a confirmed settlement, from the blow on and while it lasted; zero if there was nothing left to settle.
    pub stalled: Duration,
}

impl Cause {
    /// The word for it in files.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Killed => "killed",
            Cause::Paused => "paused",
            Cause::Database => "database",
            Cause::Expired => "expired",
        }
    }
}

/// Every repeat of a run, in the order in which the calls in vain had been sent.
pub fn repeats(record: &RunRecord) -> Vec<Repeat> {
    let orphans: Vec<&Attempt> = record.attempts.iter().filter(|attempt| is_orphan(attempt)).collect();
    let last = last_attempts(&record.attempts, &orphans);
    let is_repeated = |attempt: &&Attempt| last.get(&attempt.job).is_some_and(|last| *last > (attempt.attempt, attempt.sent));
    orphans
        .into_iter()
        .filter(is_repeated)
        .map(|attempt| {
            let (cause, blow) = cause(attempt, &record.blows);
            let Attempt { job, attempt, worker, sent, .. } = *attempt;
            Repeat { job, attempt, worker, sent, cause, blow }
        })
        .collect()
}

/// What each blow of a run cost, in the order of the record.
pub fn costs(record: &RunRecord) -> Vec<Cost> {
    let mut costs = vec![Cost::default(); record.blows.len()];
    for attempt in record.attempts.iter().filter(|attempt| is_orphan(attempt)) {
        if let (_, Some(blow)) = cause(attempt, &record.blows) {
            costs[blow].lost_leases += 1;
        }
    }
    for blow in repeats(record).iter().filter_map(|repeat| repeat.blow) {
        costs[blow].repeats += 1;
    }
    for failed in &record.tally.failed_at {
        let blamed = record.blows.iter().rposition(|blow| blow.target == Target::Database && blow.at <= *failed);
        if let Some(blow) = blamed {
            costs[blow].store_failures += 1;
        }
    }
    let settled = settlements(&record.attempts);
    for (blow, cost) in record.blows.iter().zip(&mut costs) {
        cost.stalled = stalled(blow, &settled, record);
    }
    costs
}

/// The longest time without progress that followed a blow; `None` without a blow.
pub(super) fn longest_stall(record: &RunRecord) -> Option<Duration> {
    let settled = settlements(&record.attempts);
    record.blows.iter().map(|blow| stalled(blow, &settled, record)).max()
}

/// The last attempt at each job of these: its number, and when it was sent.
fn last_attempts(attempts: &[Attempt], of: &[&Attempt]) -> BTreeMap<JobId, (u32, Instant)> {
    let mut last: BTreeMap<JobId, (u32, Instant)> = of.iter().map(|attempt| (attempt.job, Default::default())).collect();
    if last.is_empty() {
        return last;
    }
    for attempt in attempts {
        if let Some(entry) = last.get_mut(&attempt.job) {
            *entry = (*entry).max((attempt.attempt, attempt.sent));
        }
    }
    last
}

/// Whether nobody knows that it was settled.
pub(super) fn is_orphan(attempt: &Attempt) -> bool {
    matches!(attempt.fate, Fate::Lost | Fate::Killed) || attempt.settled.is_none()
}

fn cause(attempt: &Attempt, blows: &[Blow]) -> (Cause, Option<usize>) {
    let of = |target: Target, meant: &dyn Fn(&Blow) -> bool| {
        blows.iter().rposition(|blow| blow.target == target && spans(attempt, blow) && meant(blow))
    };
    let hits = |blow: &Blow| blow.workers.contains(&attempt.worker);
    if attempt.fate == Fate::Killed {
        return (Cause::Killed, of(Target::Lives, &hits));
    }
    if let Some(blow) = of(Target::Pace, &hits) {
        return (Cause::Paused, Some(blow));
    }
    match of(Target::Database, &|blow| blow.hit > 0) {
        Some(blow) => (Cause::Database, Some(blow)),
        None => (Cause::Expired, None),
    }
}

/// Whether a blow fell, or went on, while the attempt was under way.
fn spans(attempt: &Attempt, blow: &Blow) -> bool {
    attempt.settled.is_none_or(|settled| blow.at <= settled) && attempt.claimed <= blow.until.unwrap_or(blow.at)
}

/// When settlements were confirmed, in order.
fn settlements(attempts: &[Attempt]) -> Vec<Instant> {
    let confirmed = attempts.iter().filter(|attempt| attempt.fate != Fate::Lost).filter_map(|attempt| attempt.settled);
    let mut settled: Vec<Instant> = confirmed.collect();
    settled.sort_unstable();
    settled
}

/// The longest time without a settlement that began with the blow, or while it lasted, and while there was something to settle.
fn stalled(blow: &Blow, settled: &[Instant], record: &RunRecord) -> Duration {
    let over = blow.until.unwrap_or(blow.at);
    let first = settled.partition_point(|settled| *settled <= blow.at);
    // What was to last may have ended with the run, before it had begun.
    let last = settled.partition_point(|settled| *settled <= over).max(first);
    let begins = std::iter::once(blow.at).chain(settled[first..last].iter().copied());
    let ends = settled[first..].iter().copied().chain([record.ended]);
    begins.zip(ends).filter(|(begin, _)| is_open(*begin, record)).map(|(begin, end)| end.since(begin)).max().unwrap_or_default()
}

/// Whether some job had arrived and not yet ended. A job whose end was never confirmed may have ended at any time.
fn is_open(at: Instant, record: &RunRecord) -> bool {
    let open = |job: &JobRecord| job.finished.map_or(!job.state.is_terminal(), |finished| finished > at);
    record.jobs.iter().any(|job| job.arrived <= at && open(job))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::State;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn attempt(job: u64, number: u32, worker: u32, (claimed, settled): (u64, Option<u64>), fate: Fate) -> Attempt {
        let (due, sent) = (at(claimed), at(claimed));
        let settled = settled.map(at);
        Attempt {
            job: JobId(job),
            attempt: number,
            worker,
            due,
            claimed: sent,
            sent,
            answered: settled,
            settled,
            outcome: None,
            fate,
        }
    }

    fn blow(what: &'static str, target: Target, from: u64, until: u64, workers: &[u32]) -> Blow {
        Blow { what, target, at: at(from), until: Some(at(until)), workers: workers.to_vec(), hit: 1, failed: None }
    }

    fn job(id: u64, finished: u64) -> JobRecord {
        JobRecord {
            job: JobId(id),
            group: 0,
            arrived: at(0),
            malformed: false,
            state: State::Completed,
            why: None,
            retries: 1,
            last_due: None,
            finished: Some(at(finished)),
        }
    }

    fn record() -> RunRecord {
        let attempts = vec![
            attempt(1, 1, 0, (10, None), Fate::Killed),
            attempt(2, 1, 1, (10, Some(400)), Fate::Lost),
            attempt(3, 1, 2, (110, Some(390)), Fate::Lost),
            attempt(4, 1, 2, (10, Some(20)), Fate::Completed),
            attempt(1, 2, 2, (300, Some(310)), Fate::Completed),
            attempt(2, 2, 2, (320, Some(330)), Fate::Completed),
            attempt(3, 2, 3, (360, Some(370)), Fate::Completed),
        ];
        let blows = vec![
            blow("kill-workers", Target::Lives, 50, 60, &[0]),
            blow("pause-workers", Target::Pace, 60, 350, &[1]),
            blow("restart-database", Target::Database, 120, 200, &[]),
        ];
        let mut record = RunRecord { attempts, blows, ended: at(400), ..RunRecord::default() };
        record.jobs = vec![job(1, 310), job(2, 330), job(3, 370), job(4, 20)];
        record.tally.failed_at = vec![at(40), at(130), at(150)];
        record
    }

    #[test]
    fn each_repeat_is_named_with_its_cause() {
        let named: Vec<(u64, u32, Cause, Option<usize>)> =
            repeats(&record()).iter().map(|repeat| (repeat.job.0, repeat.attempt, repeat.cause, repeat.blow)).collect();
        let expected = [(1, 1, Cause::Killed, Some(0)), (2, 1, Cause::Paused, Some(1)), (3, 1, Cause::Database, Some(2))];
        assert_eq!(named, expected);
    }

    #[test]
    fn a_lease_that_ran_out_in_peace_has_no_blow_to_blame() {
        let record = RunRecord { blows: vec![], ..record() };
        let causes: Vec<Cause> = repeats(&record).iter().map(|repeat| repeat.cause).collect();
        assert_eq!(causes, [Cause::Killed, Cause::Expired, Cause::Expired]);
    }

    #[test]
    fn a_call_that_nobody_made_again_is_no_repeat() {
        let mut record = record();
        record.attempts.retain(|attempt| attempt.attempt == 1);
        assert_eq!(repeats(&record), []);
        assert_eq!(costs(&record)[0].lost_leases, 1, "though its lease was lost");
    }

    #[test]
    fn a_blow_costs_what_followed_from_it() {
        let ms = Duration::from_millis;
        let [kill, pause, restart] = costs(&record())[..] else { panic!("three blows") };
        assert_eq!(kill, Cost { lost_leases: 1, repeats: 1, store_failures: 0, stalled: ms(260) });
        assert_eq!(pause, Cost { lost_leases: 1, repeats: 1, store_failures: 0, stalled: ms(250) });
        assert_eq!(restart, Cost { lost_leases: 1, repeats: 1, store_failures: 2, stalled: ms(190) });
        assert_eq!(longest_stall(&record()), Some(ms(260)));
    }

    #[test]
    fn a_blow_after_the_last_job_costs_no_time() {
        let mut record = record();
        record.blows = vec![blow("cut-connections", Target::Database, 390, 390, &[])];
        assert_eq!(costs(&record)[0].stalled, Duration::ZERO);
    }
}
