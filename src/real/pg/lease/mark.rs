//! Where claims go on from, and whether they look at the retries.

use std::time::{Duration, Instant};

/// Where the last claim ended, and what is known of the retries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    at: Place,
    /// When a claim last looked from the beginning, and how long it took.
    looked: Option<(Instant, Duration)>,
    /// A retry may be due from then on, as far as this process knows.
    retries_from: Option<Instant>,
    /// Each settlement ends the batches that it is about: large ones are worth while.
    whole: bool,
}

/// A place in the order of new jobs: minus the priority, then the number.
pub(super) type Place = (i32, i64);

/// What a claim is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// New jobs behind this place.
    pub(super) behind: Place,
    /// And the retries.
    pub(super) retries: bool,
}

/// What a claim found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// As many jobs as it asked for.
    pub(super) is_full: bool,
    /// The last new job.
    pub(super) reached: Option<Place>,
    /// Retries that were due: there may be more of them.
    pub(super) retries: bool,
    /// When the next retry is due, if the claim looked.
    pub(super) next_due: Option<Duration>,
}

const BEGINNING: Place = (i32::MIN, i64::MIN);

impl Look {
    /// At everything.
    pub(super) const ALL: Look = Look { behind: BEGINNING, retries: true };
}

impl Default for Mark {
    fn default() -> Mark {
        Mark { at: BEGINNING, looked: None, retries_from: None, whole: true }
    }
}

impl Mark {
    /// How long claims may go on from the mark before one looks from the beginning.
    const REST: Duration = Duration::from_millis(100);

    /// What a claim is to look at now.
    pub(super) fn look(&self, now: Instant) -> Look {
        let fresh = self.looked.is_some_and(|(at, took)| now.duration_since(at) < (took * 10).max(Mark::REST));
        match fresh {
            true => Look { behind: self.at, retries: self.retries_from.is_some_and(|at| now >= at) },
            false => Look::ALL,
        }
    }

    /// A claim that began so long ago looked at this, and found that.
    pub(super) fn saw(&mut self, look: Look, began: Instant, found: Found) {
        if look.retries {
            let due = found.next_due.map(|after| began + after);
            self.retries_from = if found.retries { Some(began) } else { due };
        }
        if !found.is_full {
            // The queue may be empty: whatever comes next is to be seen, wherever its place is.
            self.looked = None;
        } else if look.behind == BEGINNING {
            (self.at, self.looked) = (found.reached.unwrap_or(BEGINNING), Some((began, began.elapsed())));
        } else if let Some(reached) = found.reached {
            self.at = self.at.max(reached);
        }
    }

    /// A settlement left jobs behind that may be claimed again so long from now: when exactly is the server's to know, but not sooner.
    pub(super) fn expect(&mut self, soonest: Duration) {
        let due = Instant::now() + soonest;
        self.retries_from = Some(self.retries_from.map_or(due, |at| at.min(due)));
    }

    /// Whether settlements end the batches that they are about.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(super) fn set_whole(&mut self, whole: bool) {
        self.whole = whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Found = Found { is_full: true, reached: Some((0, 7)), retries: false, next_due: None };

    #[test]
    fn a_full_claim_is_gone_on_from_and_one_that_was_not_full_is_not() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        assert_eq!(mark.look(now), Look::ALL);
        mark.saw(Look::ALL, now, FULL);
        let behind = Look { behind: (0, 7), retries: false };
        assert_eq!(mark.look(now), behind);
        mark.saw(behind, now, Found { is_full: false, ..FULL });
        assert_eq!(mark.look(now), Look::ALL);
    }

    #[test]
    fn once_in_a_while_a_claim_looks_from_the_beginning() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        mark.saw(Look::ALL, now, FULL);
        assert_eq!(mark.look(now + 10 * Mark::REST + Duration::from_secs(60)), Look::ALL);
    }

    #[test]
    fn retries_are_looked_at_when_one_may_be_due_and_again_when_there_were_some() {
        let (mut mark, now) = (Mark::default(), Instant::now());
        mark.saw(Look::ALL, now, Found { next_due: Some(Duration::from_millis(20)), ..FULL });
        assert!(!mark.look(now + Duration::from_millis(19)).retries);
        let look = mark.look(now + Duration::from_millis(20));
        assert_eq!(look, Look { behind: (0, 7), retries: true });
        mark.saw(look, now, Found { retries: true, ..FULL });
        assert!(mark.look(now).retries);
        mark.saw(look, now, FULL);
        assert!(!mark.look(now).retries);
        mark.expect(Duration::ZERO);
        assert!(mark.look(Instant::now()).retries);
    }
}
