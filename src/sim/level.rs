//! The jobs of one priority in virtual time, in the order in which claims take them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::store::Place;
use crate::time::Instant;

/// The jobs of one priority that may be claimed.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    /// Never claimed, by number.
    fresh: VecDeque<Place>,
    /// Claimed before, by when they came due, then by number.
    due: VecDeque<(Instant, Place)>,
    /// The same by number alone: in transaction mode.
    aged: BinaryHeap<Reverse<Place>>,
    /// Numbers of retries that may be chosen, and where they are in `due`; kept for its memory.
    order: Vec<(Place, usize)>,
}

impl Level {
    /// A new job, with the highest number so far.
    pub(super) fn arrive(&mut self, place: Place) {
        self.fresh.push_back(place);
    }

    /// A retry has come due, where retries are claimed by their numbers like all jobs.
    pub(super) fn age(&mut self, place: Place) {
        self.aged.push(Reverse(place));
    }

    /// A retry has come due: after all that had before, but for one that was given back or comes due at the same moment.
    pub(super) fn wait(&mut self, retry: (Instant, Place)) {
        if self.due.back().is_none_or(|last| *last < retry) {
            self.due.push_back(retry);
        } else {
            let place = self.due.partition_point(|other| *other < retry);
            self.due.insert(place, retry);
        }
    }

    /// Takes out the jobs of a claim of `limit`, up to so many with those that were chosen before: the lowest numbers among the new
    /// jobs and the retries that have been due longest.
    pub(super) fn choose(&mut self, limit: usize, chosen: &mut Vec<Place>) {
        let may = if chosen.len() < limit { limit.min(self.due.len()) } else { 0 };
        self.order.clear();
        self.order.extend(self.due.iter().take(may).zip(0..).map(|((_, place), at)| (*place, at)));
        self.order.sort_unstable();
        let mut retries = 0;
        while chosen.len() < limit {
            let retry = self.order.get(retries).map(|(place, _)| *place);
            let (fresh, aged) = (self.fresh.front().copied(), self.aged.peek().map(|Reverse(place)| *place));
            let Some(next) = [retry, fresh, aged].into_iter().flatten().min() else { break };
            chosen.push(next);
            if retry == Some(next) {
                retries += 1;
            } else if fresh == Some(next) {
                self.fresh.pop_front();
            } else {
                self.aged.pop();
            }
        }
        if retries > 0 {
            let left = &mut self.order[retries..];
            left.sort_unstable_by_key(|(_, at)| *at);
            let left: Vec<(Instant, Place)> = left.iter().map(|(_, at)| self.due[*at]).collect();
            self.due.drain(..may);
            left.into_iter().rev().for_each(|retry| self.due.push_front(retry));
        }
    }
}
