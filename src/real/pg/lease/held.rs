//! What this process holds: its batches by number, and how many of their jobs are left.

use std::collections::BTreeMap;

use crate::queue::{How, Settlement, Token};

/// A token is a batch's number and the job's place in it.
const PLACES: i64 = 1024;
/// Most jobs in a batch.
pub(super) const LARGEST: u32 = 1000;
/// Most jobs in a batch whose jobs end one by one: they are looked for among all of it.
pub(super) const SMALL: u32 = 64;
/// Batches that an instance can number.
const NUMBERS: i64 = 1 << 32;

/// The batches of one instance of the store.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The instance's own number, from the database.
    instance: i64,
    taken: i64,
    left: BTreeMap<i64, Left>,
    /// Batches that may or may not have been claimed, by worker.
    unsure: BTreeMap<u32, Vec<i64>>,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    jobs: u32,
    /// None of them has been settled yet.
    is_untouched: bool,
}

/// What a settlement is to the batches that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// It completes every job of each of them.
    Completed,
    /// It ends every job of each of them, one way or another.
    Whole,
    /// It ends what is left of each of them.
    Rest,
    /// It leaves something.
    Part,
}

impl Held {
    /// What instance number `instance` holds: nothing yet.
    pub(super) fn of(instance: i64) -> Held {
        Held { instance, ..Held::default() }
    }

    /// A number for a batch, that no other batch of this schema has.
    pub(super) fn number(&mut self) -> i64 {
        self.taken += 1;
        self.instance * NUMBERS + self.taken
    }

    /// Takes note of a claimed batch.
    pub(super) fn keep(&mut self, batch: i64, jobs: u32) {
        self.left.insert(batch, Left { jobs, is_untouched: true });
    }

    /// This worker may have claimed this batch: there was no answer.
    pub(super) fn doubt(&mut self, worker: u32, batch: i64) {
        self.unsure.entry(worker).or_default().push(batch);
    }

    /// The batches that this worker may have claimed, if there are any.
    pub(super) fn unsure(&self, worker: u32) -> Option<Vec<i64>> {
        self.unsure.get(&worker).cloned()
    }

    /// It is known what this worker claimed.
    pub(super) fn resolve(&mut self, worker: u32) {
        self.unsure.remove(&worker);
    }

    /// What these settlements are to their batches.
    pub(super) fn extent(&self, batches: &BTreeMap<i64, u32>, settlements: &[&Settlement]) -> Extent {
        let ends = |(batch, jobs): (&i64, &u32)| self.left.get(batch).is_some_and(|left| left.jobs == *jobs);
        if !batches.iter().all(ends) {
            return Extent::Part;
        }
        if !batches.keys().all(|batch| self.left.get(batch).is_some_and(|left| left.is_untouched)) {
            return Extent::Rest;
        }
        let completed = settlements.iter().all(|settlement| settlement.how == How::Complete);
        if completed { Extent::Completed } else { Extent::Whole }
    }

    /// These jobs are settled.
    pub(super) fn forget(&mut self, batches: &BTreeMap<i64, u32>) {
        for (batch, jobs) in batches {
            if let Some(left) = self.left.get_mut(batch) {
                *left = Left { jobs: left.jobs.saturating_sub(*jobs), is_untouched: false };
                if left.jobs == 0 {
                    self.left.remove(batch);
                }
            }
        }
    }
}

/// The name of a batch's claim number `place`.
pub(super) fn token(batch: i64, place: usize) -> Token {
    Token(batch * PLACES + place as i64)
}

/// The batch that a claim is in.
pub(super) fn batch_of(token: Token) -> i64 {
    token.0 / PLACES
}

/// How many claims of each batch these are about.
pub(super) fn by_batch(settlements: &[&Settlement]) -> BTreeMap<i64, u32> {
    let mut batches = BTreeMap::new();
    for settlement in settlements {
        *batches.entry(batch_of(settlement.token)).or_default() += 1;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::job::Why;

    fn settlement(token: Token, how: How) -> Settlement {
        Settlement { job: JobId(0), token, how }
    }

    #[test]
    fn a_settlement_completes_its_batches_only_if_they_are_untouched_and_all_of_it_is_done() {
        let mut held = Held::of(7);
        let (one, two) = (held.number(), held.number());
        assert!(one != two && one / NUMBERS == 7);
        held.keep(one, 2);
        held.keep(two, 1);
        let extent = |held: &Held, settlements: &[Settlement]| {
            let settlements: Vec<&Settlement> = settlements.iter().collect();
            held.extent(&by_batch(&settlements), &settlements)
        };
        let done = |batch, place| settlement(token(batch, place), How::Complete);
        let given_up = settlement(token(two, 0), How::Discard { why: Why::Permanent, reason: "".into() });
        assert_eq!(extent(&held, &[done(one, 0), done(one, 1), done(two, 0)]), Extent::Completed);
        assert_eq!(extent(&held, &[done(one, 0), done(one, 1), given_up]), Extent::Whole);
        assert_eq!(extent(&held, &[done(one, 0), done(two, 0)]), Extent::Part);
        held.forget(&[(one, 1)].into());
        assert_eq!(extent(&held, &[done(one, 1)]), Extent::Rest, "it has been touched");
        held.forget(&[(one, 1)].into());
        assert_eq!(extent(&held, &[done(one, 1)]), Extent::Part, "it is not held any more");
    }
}
