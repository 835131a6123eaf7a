//! The reference store: the promises of this room in the fewest words, to be read by eye.
//!
//! It is told the time. It looks at every job on every claim, so it is slow, and obviously right; the store in
//! Postgres is tested against it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Claim, ClaimMode, Claimed, How, Settled, Settlement, Token};
use crate::job::{JobId, Memory, State, Why};
use crate::time::Instant;

/// A job as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its type.
    pub kind: Arc<str>,
    /// What its handler gets.
    pub payload: Arc<str>,
    /// Higher is claimed first.
    pub priority: i16,
    /// Retries allowed.
    pub max_retries: u32,
    /// When it was put in.
    pub created: Instant,
    /// Where it stands, but that a retry which has come due is available: see [`Row::state_at`].
    pub state: State,
    /// Retries spent.
    pub retries: u32,
    /// When it is due, or was.
    pub due: Instant,
    /// The delay chosen before the attempt to come, or under way.
    pub last_delay: Option<Duration>,
    /// The latest claim of it.
    pub token: Option<Token>,
    /// When that claim expires.
    pub lease_until: Instant,
    /// Why it was discarded.
    pub why: Option<Why>,
}

impl Row {
    /// A job that is due as soon as it is put in.
    pub fn new(kind: &str, payload: &str, priority: i16, max_retries: u32, created: Instant) -> Row {
        Row {
            kind: kind.into(),
            payload: payload.into(),
            priority,
            max_retries,
            created,
            state: State::Available,
            retries: 0,
            due: created,
            last_delay: None,
            token: None,
            lease_until: Instant::START,
            why: None,
        }
    }

    /// Where it stands at this moment.
    pub fn state_at(&self, now: Instant) -> State {
        if self.state == State::Retryable && self.due <= now { State::Available } else { self.state }
    }
}

/// Jobs in memory.
#[derive(Clone, Debug, Default)]
pub struct Store {
    rows: BTreeMap<JobId, Row>,
    tokens: i64,
    /// New jobs and retries are one queue, as in the article's table.
    by_age: bool,
    /// Claims whose lease ran out before they were settled.
    expired: BTreeSet<Token>,
}

impl Store {
    /// An empty store that claims as this mode does.
    pub fn new(mode: ClaimMode) -> Store {
        Store { by_age: mode == ClaimMode::Transaction, ..Store::default() }
    }

    /// Puts a job in; its number must be new.
    pub fn insert(&mut self, id: JobId, row: Row) {
        let earlier = self.rows.insert(id, row);
        assert!(earlier.is_none(), "job {id} is already there");
    }

    /// The jobs, by number.
    pub fn rows(&self) -> &BTreeMap<JobId, Row> {
        &self.rows
    }

    /// Takes up to `limit` due jobs for `lease`. The candidates are the first new jobs by priority, then number, and of each priority the
    /// retries that have been due longest, `limit` of each at the most; of these the best by priority, then number. In transaction mode
    /// all that is due, by priority, then number.
    pub fn claim(&mut self, now: Instant, limit: u32, lease: Duration) -> Claimed {
        let mut due = self.candidates(now, limit as usize);
        due.sort_by_key(|id| (std::cmp::Reverse(self.rows[id].priority), *id));
        due.truncate(limit as usize);
        let claims = due.into_iter().map(|id| self.take(now, id, lease)).collect();
        let waiting = self.rows.values().filter(|row| row.state_at(now) == State::Retryable);
        Claimed { claims, next_due: waiting.map(|row| row.due.since(now)).min() }
    }

    fn candidates(&self, now: Instant, limit: usize) -> Vec<JobId> {
        if self.by_age {
            return self.rows.iter().filter(|(_, row)| row.state_at(now) == State::Available).map(|(id, _)| *id).collect();
        }
        let in_state = |state| self.rows.iter().filter(move |(_, row)| row.state == state && row.due <= now);
        let mut new: Vec<JobId> = in_state(State::Available).map(|(id, _)| *id).collect();
        new.sort_by_key(|id| (std::cmp::Reverse(self.rows[id].priority), *id));
        new.truncate(limit);
        let mut levels: BTreeMap<i16, Vec<JobId>> = BTreeMap::new();
        in_state(State::Retryable).for_each(|(id, row)| levels.entry(row.priority).or_default().push(*id));
        for mut level in levels.into_values() {
            level.sort_by_key(|id| self.rows[id].due);
            new.extend(level.into_iter().take(limit));
        }
        new
    }

    fn take(&mut self, now: Instant, id: JobId, lease: Duration) -> Claim {
        self.tokens += 1;
        let token = Token(self.tokens);
        let row = self.rows.get_mut(&id).expect("the claim has just seen it");
        row.state = State::Running;
        row.token = Some(token);
        row.lease_until = now + lease;
        let memory = Memory {
            retries: row.retries,
            max_retries: row.max_retries,
            last_delay: row.last_delay,
            age: now.since(row.created),
        };
        Claim { job: id, token, kind: row.kind.clone(), payload: row.payload.clone(), memory, lag: now.since(row.due) }
    }

    /// Settles claims. One that is not held any more is not touched: it is lost if its lease ran out, and was settled before if not, so that a
    /// settlement can be sent again.
    pub fn settle(&mut self, now: Instant, settlements: &[Settlement]) -> Settled {
        let mut answer = Settled::default();
        for settlement in settlements {
            if let Some(row) = self.held(settlement.job, settlement.token) {
                settle_row(row, now, &settlement.how);
            }
            match self.expired.contains(&settlement.token) {
                true => answer.lost.push(settlement.token),
                false => answer.settled.push(settlement.token),
            }
        }
        answer
    }

    /// Makes claims last for `lease` from now; returns those that are not held any more.
    pub fn extend(&mut self, now: Instant, claims: &[(JobId, Token)], lease: Duration) -> Vec<Token> {
        let mut lost = Vec::new();
        for &(job, token) in claims {
            match self.held(job, token) {
                None => lost.push(token),
                Some(row) => row.lease_until = now + lease,
            }
        }
        lost
    }

    fn held(&mut self, job: JobId, token: Token) -> Option<&mut Row> {
        self.rows.get_mut(&job).filter(|row| row.state == State::Running && row.token == Some(token))
    }

    /// Takes expired claims away, at the price of one retry each; returns how many jobs went back and how many were given up.
    pub fn reap(&mut self, now: Instant) -> (u64, u64) {
        let (mut returned, mut discarded) = (0, 0);
        for row in self.rows.values_mut().filter(|row| row.state == State::Running && row.lease_until <= now) {
            self.expired.extend(row.token.take());
            if row.retries < row.max_retries {
                row.retries += 1;
                (row.state, row.due, row.last_delay) = (State::Retryable, now, Some(Duration::ZERO));
                returned += 1;
            } else {
                (row.state, row.why) = (State::Discarded, Some(Why::Exhausted));
                discarded += 1;
            }
        }
        (returned, discarded)
    }
}

fn settle_row(row: &mut Row, now: Instant, how: &How) {
    match how {
        How::Complete => row.state = State::Completed,
        How::Retry { after, .. } => {
            row.state = State::Retryable;
            row.retries += 1;
            row.due = now + *after;
            row.last_delay = Some(*after);
        }
        How::Discard { why, .. } => (row.state, row.why) = (State::Discarded, Some(*why)),
        How::Release => row.state = State::Retryable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn store(jobs: &[(u64, i16, u64)]) -> Store {
        let mut store = Store::default();
        for &(id, priority, created) in jobs {
            store.insert(JobId(id), Row::new("email", "{}", priority, 1, at(created)));
        }
        store
    }

    const LEASE: Duration = Duration::from_millis(100);

    fn retry(claim: &Claim, after: u64) -> Settlement {
        let how = How::Retry { after: Duration::from_millis(after), reason: "".into() };
        Settlement { job: claim.job, token: claim.token, how }
    }

    #[test]
    fn claims_by_priority_then_number_and_of_retries_the_longest_due() {
        let mut store = store(&[(1, 0, 5), (2, 0, 3), (3, 9, 7), (4, 0, 3)]);
        let order: Vec<u64> = store.claim(at(10), 10, LEASE).claims.iter().map(|claim| claim.job.0).collect();
        assert_eq!(order, [3, 1, 2, 4]);
        let mut store = self::store(&[(1, 0, 0), (2, 0, 0), (3, 0, 0)]);
        let claims = store.claim(at(0), 3, LEASE).claims;
        store.settle(at(0), &[retry(&claims[0], 30), retry(&claims[1], 10), retry(&claims[2], 20)]);
        let longest: Vec<u64> = store.claim(at(50), 2, LEASE).claims.iter().map(|claim| claim.job.0).collect();
        assert_eq!(longest, [2, 3]);
    }

    #[test]
    fn a_retry_is_not_claimed_before_it_is_due_and_says_when_it_will_be() {
        let mut store = store(&[(1, 0, 0)]);
        let claim = store.claim(at(0), 1, LEASE).claims.remove(0);
        store.settle(at(10), &[retry(&claim, 50)]);
        let early = store.claim(at(59), 1, LEASE);
        assert_eq!((early.claims.len(), early.next_due), (0, Some(Duration::from_millis(1))));
        let again = store.claim(at(61), 1, LEASE).claims.remove(0);
        assert_eq!((again.memory.attempt(), again.lag), (2, Duration::from_millis(1)));
        assert_eq!(again.memory.last_delay, Some(Duration::from_millis(50)));
    }

    #[test]
    fn a_job_that_is_due_and_not_taken_waits_for_a_worker_and_not_for_its_time() {
        let mut store = store(&[(1, 0, 0), (2, 0, 0)]);
        let claims = store.claim(at(0), 2, LEASE).claims;
        store.settle(at(0), &[retry(&claims[0], 10), retry(&claims[1], 20)]);
        let claimed = store.claim(at(30), 1, LEASE);
        assert_eq!((claimed.claims.len(), claimed.next_due), (1, None));
        assert_eq!(store.rows()[&JobId(2)].state_at(at(30)), State::Available);
    }

    #[test]
    fn a_late_settle_is_lost_and_changes_nothing() {
        let mut store = store(&[(1, 0, 0)]);
        let old = store.claim(at(0), 1, LEASE).claims.remove(0);
        assert_eq!(store.reap(at(99)), (0, 0));
        assert_eq!(store.reap(at(100)), (1, 0));
        let new = store.claim(at(101), 1, LEASE).claims.remove(0);
        assert_eq!(new.memory.attempt(), 2, "the lost attempt counts");
        let done = |claim: &Claim| Settlement { job: claim.job, token: claim.token, how: How::Complete };
        assert_eq!(store.settle(at(102), &[done(&old)]).lost, [old.token]);
        assert_eq!(store.rows()[&JobId(1)].state, State::Running);
        assert_eq!(store.settle(at(103), &[done(&new)]).settled, [new.token]);
    }

    #[test]
    fn settling_twice_is_settling_once() {
        let mut store = store(&[(1, 0, 0)]);
        let claim = store.claim(at(0), 1, LEASE).claims.remove(0);
        let first = store.settle(at(1), &[retry(&claim, 50)]);
        assert_eq!(store.settle(at(30), &[retry(&claim, 50)]), first);
        assert_eq!(store.rows()[&JobId(1)].due, at(51));
    }

    #[test]
    fn a_job_whose_workers_all_die_ends_too() {
        let mut store = store(&[(1, 0, 0)]);
        for round in 0..2 {
            assert_eq!(store.claim(at(round * 100), 1, LEASE).claims.len(), 1);
            store.reap(at(round * 100 + 100));
        }
        assert_eq!(store.rows()[&JobId(1)].state, State::Discarded);
    }
}
