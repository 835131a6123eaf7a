//! The store in virtual time: what [`MemoryStore`](crate::queue::MemoryStore) promises, for millions of jobs.
//!
//! The reference store looks at every job on every claim; this one keeps each job where its next owner will look for it:
//!
//! ```text
//!  waiting (heap by due) ──due──► level of its priority ──claim──► running (list) ──settle──► waiting, or done
//!                                  ├ fresh: new jobs by number       └─lease over─► waiting
//!                                  └ due: retries by due time
//! ```
//! A job moves once at each of its changes. Only the heap takes logarithmic time: new jobs come in order of their numbers and retries leave the
//! heap in order of their due times, so that both are lists. A claim touches no more retries than it may take. The two stores are held
//! against each other by random scripts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::heap::Heap;
use super::level::Level;
use crate::job::{JobId, Memory, State, Why};
use crate::queue::{Claim, ClaimMode, Claimed, How, Settled, Settlement, Token};
use crate::time::{Instant, nanos};

/// What jobs of one group have in common.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The job type.
    pub name: Arc<str>,
    /// Higher is claimed first.
    pub priority: i16,
    /// Retries allowed.
    pub max_retries: u32,
    /// Bodies: of a sound job, and of a malformed one.
    pub payloads: [Arc<str>; 2],
}

/// A job's place in the store: its number less 1.
pub(super) type Place = u32;

/// No last delay.
const NONE: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Row {
    created: Instant,
    due: Instant,
    /// Nanoseconds; [`NONE`] before the first retry.
    last_delay: u64,
    lease_until: Instant,
    /// The claim that holds it, while it runs.
    token: i64,
    retries: u32,
    /// Where it is in the list of running jobs, while it runs.
    running: u32,
    kind: u16,
    malformed: bool,
    state: State,
    why: Option<Why>,
}

/// A job that waits for its time: all that must be known of it then, so that nobody has to look for its row.
#[derive(Clone, Copy, Debug)]
struct Wait {
    place: Place,
    level: u16,
    /// It has been due for longer than the heap says, since it was given back.
    early: bool,
}

/// One job as the store holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Where it stands.
    pub state: State,
    /// Why it was given up.
    pub why: Option<Why>,
    /// Retries spent.
    pub retries: u32,
    /// When it was put in.
    pub created: Instant,
    /// When it was last due.
    pub due: Instant,
}

/// Jobs in virtual time.
#[derive(Clone, Debug)]
pub struct Store {
    kinds: Vec<Kind>,
    by_age: bool,
    rows: Vec<Row>,
    /// Highest priority first.
    levels: Vec<Level>,
    /// The level of each kind.
    level_of: Vec<u16>,
    waiting: Heap<Wait>,
    /// Retries that have just come due; kept for its memory.
    come_due: Vec<(Instant, Place, u16)>,
    running: Vec<Place>,
    tokens: i64,
    /// Claims that ended before they were settled.
    expired: BTreeSet<i64>,
    ended: u64,
    /// Jobs of the claim at hand; kept for its memory.
    chosen: Vec<Place>,
    /// No lease ends before then.
    held_until: Instant,
}

impl Store {
    /// An empty store that claims as this mode does.
    pub fn new(mode: ClaimMode, kinds: Vec<Kind>) -> Store {
        let mut priorities: Vec<i16> = kinds.iter().map(|kind| kind.priority).collect();
        priorities.sort_unstable_by(|one, other| other.cmp(one));
        priorities.dedup();
        let level_of = |kind: &Kind| priorities.partition_point(|priority| *priority > kind.priority) as u16;
        Store {
            level_of: kinds.iter().map(level_of).collect(),
            kinds,
            by_age: mode == ClaimMode::Transaction,
            rows: Vec::new(),
            levels: vec![Level::default(); priorities.len()],
            waiting: Heap::default(),
            come_due: Vec::new(),
            running: Vec::new(),
            tokens: 0,
            expired: BTreeSet::new(),
            ended: 0,
            chosen: Vec::new(),
            held_until: Instant::FAR,
        }
    }

    /// Makes room for so many jobs in all.
    pub fn reserve(&mut self, jobs: usize) {
        self.rows.reserve(jobs.saturating_sub(self.rows.len()));
    }

    /// Puts in the job with the next number, of kind `kind`; it is due at once. Returns its number.
    pub fn insert(&mut self, now: Instant, kind: usize, malformed: bool) -> JobId {
        let place = self.rows.len() as Place;
        self.rows.push(Row {
            created: now,
            due: now,
            last_delay: NONE,
            lease_until: Instant::START,
            token: 0,
            retries: 0,
            running: 0,
            kind: kind as u16,
            malformed,
            state: State::Available,
            why: None,
        });
        self.levels[usize::from(self.level_of[kind])].arrive(place);
        JobId(u64::from(place) + 1)
    }

    /// How many jobs have been put in.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no job has been put in.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many jobs are in a terminal state.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// The jobs in order of their number.
    pub fn rows(&self, now: Instant) -> impl Iterator<Item = (JobId, View)> + '_ {
        let view = move |row: &Row| View {
            state: if row.state == State::Retryable && row.due <= now { State::Available } else { row.state },
            why: row.why,
            retries: row.retries,
            created: row.created,
            due: row.due,
        };
        self.rows.iter().zip(1..).map(move |(row, number)| (JobId(number), view(row)))
    }

    /// Takes up to `limit` due jobs for `lease`, in the order that [`MemoryStore::claim`](crate::queue::MemoryStore::claim)
    /// describes.
    pub fn claim(&mut self, now: Instant, limit: u32, lease: Duration) -> Claimed {
        self.promote(now);
        let mut chosen = std::mem::take(&mut self.chosen);
        let limit = limit as usize;
        for level in &mut self.levels {
            level.choose(limit, &mut chosen);
        }
        let claims = chosen.drain(..).map(|place| self.take(now, place, lease)).collect();
        self.chosen = chosen;
        let next_due = self.waiting.first().map(|first| Instant::from_nanos(first).since(now));
        Claimed { claims, next_due }
    }

    /// Moves retries that have come due to where claims look.
    fn promote(&mut self, now: Instant) {
        while self.waiting.first().is_some_and(|first| first <= now.as_nanos())
            && let Some((at, Wait { place, level, early })) = self.waiting.pop()
        {
            let due = if early { self.rows[place as usize].due } else { Instant::from_nanos(at) };
            self.come_due.push((due, place, level));
        }
        // Some came due at the same moment, or were given back and had been due before.
        self.come_due.sort_unstable();
        for (due, place, level) in self.come_due.drain(..) {
            let level = &mut self.levels[usize::from(level)];
            if self.by_age {
                level.age(place);
            } else {
                level.wait((due, place));
            }
        }
    }

    /// A job waits for the time that its row says.
    fn wait(&mut self, now: Instant, place: Place) {
        let Row { due, kind, .. } = self.rows[place as usize];
        let wait = Wait { place, level: self.level_of[usize::from(kind)], early: due < now };
        self.waiting.push(due.max(now).as_nanos(), wait);
    }

    fn take(&mut self, now: Instant, place: Place, lease: Duration) -> Claim {
        self.tokens += 1;
        let row = &mut self.rows[place as usize];
        row.state = State::Running;
        row.token = self.tokens;
        row.lease_until = now + lease;
        self.held_until = self.held_until.min(row.lease_until);
        row.running = self.running.len() as u32;
        self.running.push(place);
        let kind = &self.kinds[usize::from(row.kind)];
        let memory = Memory {
            retries: row.retries,
            max_retries: kind.max_retries,
            last_delay: (row.last_delay != NONE).then(|| Duration::from_nanos(row.last_delay)),
            age: now.since(row.created),
        };
        Claim {
            job: JobId(u64::from(place) + 1),
            token: Token(row.token),
            kind: kind.name.clone(),
            payload: kind.payloads[usize::from(row.malformed)].clone(),
            memory,
            lag: now.since(row.due),
        }
    }

    /// Settles claims. One that is not held any more is not touched: it is lost if it expired, and was settled before if not. Returns the
    /// answer, and how many jobs it ended.
    pub fn settle(&mut self, now: Instant, settlements: &[Settlement]) -> (Settled, u64) {
        let before = self.ended;
        let mut answer = Settled { settled: Vec::with_capacity(settlements.len()), lost: Vec::new() };
        for settlement in settlements {
            let Some(place) = self.held(settlement.job, settlement.token) else {
                let list = if self.expired.contains(&settlement.token.0) { &mut answer.lost } else { &mut answer.settled };
                list.push(settlement.token);
                continue;
            };
            answer.settled.push(settlement.token);
            self.release(place);
            let row = &mut self.rows[place as usize];
            match settlement.how {
                How::Complete => row.state = State::Completed,
                How::Retry { after, .. } => {
                    row.retries += 1;
                    row.due = now + after;
                    row.last_delay = nanos(after).min(NONE - 1);
                }
                How::Discard { why, .. } => (row.state, row.why) = (State::Discarded, Some(why)),
                How::Release => {}
            }
            if row.state.is_terminal() {
                self.ended += 1;
            } else {
                row.state = State::Retryable;
                self.wait(now, place);
            }
        }
        (answer, self.ended - before)
    }

    /// Takes a claim away at no price: its transaction was rolled back.
    pub fn revoke(&mut self, now: Instant, job: JobId, token: Token) {
        if let Some(place) = self.held(job, token) {
            self.release(place);
            let row = &mut self.rows[place as usize];
            row.state = State::Retryable;
            self.wait(now, place);
            self.expired.insert(token.0);
        }
    }

    /// Makes claims last for `lease` from now; returns those that are not held any more.
    pub fn extend(&mut self, now: Instant, claims: &[(JobId, Token)], lease: Duration) -> Vec<Token> {
        let mut lost = Vec::new();
        for &(job, token) in claims {
            match self.held(job, token) {
                None => lost.push(token),
                Some(place) => {
                    self.rows[place as usize].lease_until = now + lease;
                    self.held_until = self.held_until.min(now + lease);
                }
            }
        }
        lost
    }

    /// Takes expired claims away, at the price of one retry each; returns how many jobs went back and how many were given up.
    pub fn reap(&mut self, now: Instant) -> (u64, u64) {
        let (mut returned, mut discarded) = (0, 0);
        if now < self.held_until {
            return (returned, discarded);
        }
        let lease_until = |store: &Store, place: &Place| store.rows[*place as usize].lease_until;
        let expired: Vec<Place> = self.running.iter().copied().filter(|place| lease_until(self, place) <= now).collect();
        for place in expired {
            self.release(place);
            let row = &mut self.rows[place as usize];
            self.expired.insert(row.token);
            if row.retries < self.kinds[usize::from(row.kind)].max_retries {
                row.retries += 1;
                (row.state, row.due, row.last_delay) = (State::Retryable, now, 0);
                self.wait(now, place);
                returned += 1;
            } else {
                (row.state, row.why) = (State::Discarded, Some(Why::Exhausted));
                self.ended += 1;
                discarded += 1;
            }
        }
        self.held_until = self.running.iter().map(|place| lease_until(self, place)).min().unwrap_or(Instant::FAR);
        (returned, discarded)
    }

    fn held(&self, job: JobId, token: Token) -> Option<Place> {
        let place = job.0.checked_sub(1)? as usize;
        let row = self.rows.get(place)?;
        (row.state == State::Running && row.token == token.0).then_some(place as Place)
    }

    /// Takes a job off the list of those that run.
    fn release(&mut self, place: Place) {
        let at = self.rows[place as usize].running;
        self.running.swap_remove(at as usize);
        if let Some(moved) = self.running.get(at as usize) {
            self.rows[*moved as usize].running = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{MemoryRow, MemoryStore};
    use proptest::prelude::*;

    /// One step of a script: what is done, how long after the last, and a number that chooses among what there is.
    type Step = (u8, u64, u32);

    struct Pair {
        quick: Store,
        reference: MemoryStore,
        kinds: Vec<Kind>,
        held: Vec<(JobId, Token)>,
    }

    impl Pair {
        fn new(mode: ClaimMode) -> Pair {
            let kind =
                |priority, max_retries| Kind { name: "email".into(), priority, max_retries, payloads: ["{}".into(), "{".into()] };
            let kinds = vec![kind(0, 2), kind(5, 1), kind(-3, 0)];
            let quick = Store::new(mode, kinds.clone());
            Pair { quick, reference: MemoryStore::new(mode), kinds, held: Vec::new() }
        }

        fn play(&mut self, now: Instant, what: u8, choice: u32) {
            let lease = Duration::from_nanos(40);
            match what {
                0 | 1 => {
                    let kind = choice as usize % self.kinds.len();
                    let id = self.quick.insert(now, kind, false);
                    let Kind { priority, max_retries, .. } = self.kinds[kind];
                    self.reference.insert(id, MemoryRow::new("email", "{}", priority, max_retries, now));
                }
                2 | 3 => {
                    let (quick, reference) =
                        (self.quick.claim(now, choice % 5 + 1, lease), self.reference.claim(now, choice % 5 + 1, lease));
                    assert_eq!(quick, reference);
                    self.held.extend(quick.claims.iter().map(|claim| (claim.job, claim.token)));
                }
                4 | 5 => self.settle(now, choice),
                6 => {
                    let claims: Vec<(JobId, Token)> = self.held.iter().copied().step_by(2).collect();
                    assert_eq!(self.quick.extend(now, &claims, lease), self.reference.extend(now, &claims, lease));
                }
                _ => assert_eq!(self.quick.reap(now), self.reference.reap(now)),
            }
        }

        fn settle(&mut self, now: Instant, choice: u32) {
            let count = (choice as usize % 4).min(self.held.len());
            let settlements: Vec<Settlement> = self
                .held
                .drain(..count)
                .zip(0..)
                .map(|((job, token), n)| {
                    let how = match (choice + n) % 5 {
                        0 => How::Complete,
                        1 | 2 => How::Retry { after: Duration::from_nanos(u64::from(choice % 30)), reason: "".into() },
                        3 => How::Discard { why: Why::Permanent, reason: "".into() },
                        _ => How::Release,
                    };
                    Settlement { job, token, how }
                })
                .collect();
            assert_eq!(self.quick.settle(now, &settlements).0, self.reference.settle(now, &settlements));
        }

        fn assert_same(&self, now: Instant) {
            for ((id, quick), (number, row)) in self.quick.rows(now).zip(self.reference.rows()) {
                assert_eq!(id, *number);
                let reference =
                    View { state: row.state_at(now), why: row.why, retries: row.retries, created: row.created, due: row.due };
                assert_eq!(quick, reference, "job {id}");
            }
            let ended = self.reference.rows().values().filter(|row| row.state.is_terminal()).count();
            assert_eq!(self.quick.ended(), ended as u64);
        }
    }

    fn script() -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec((0_u8..8, 0_u64..25, any::<u32>()), 1..200)
    }

    proptest! {
        #[test]
        fn it_answers_as_the_reference_store_does(steps in script(), by_age in any::<bool>()) {
            let mut pair = Pair::new(if by_age { ClaimMode::Transaction } else { ClaimMode::Lease });
            let mut now = Instant::START;
            for (what, after, choice) in steps {
                now = now + Duration::from_nanos(after);
                pair.play(now, what, choice);
                pair.assert_same(now);
            }
        }
    }
}
