//! Capacity with a last-in-first-out queue: the newest call is served first, so that under overload some are served in time and not
//! all of them too late.
//!
//! Here later arrivals decide how long a call waits, so that its reply can't be known on arrival: the call gets a ticket, and
//! its reply comes when a server takes it, when it has waited too long, or when a full queue gives its place to a newer call.
//! This is the one model that needs an event of its own; it says when ([`Stack::wake_at`]).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::server::TurnedAway;
use crate::call::Ticket;
use crate::time::{Instant, Window};

/// The servers, and the calls that wait for them: the newest at the back.
#[derive(Debug)]
pub(super) struct Stack<T> {
    servers: u32,
    /// Those that may be used at present.
    left: u32,
    busy: BinaryHeap<Reverse<Instant>>,
    waiting: VecDeque<Waiting<T>>,
    queue: usize,
    patience: Option<Duration>,
    tickets: u64,
    released: Vec<Released<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    ticket: Ticket,
    since: Instant,
    work: Duration,
    what: T,
}

/// A call that waits no longer.
#[derive(Debug)]
pub(super) struct Released<T> {
    pub(super) ticket: Ticket,
    pub(super) at: Instant,
    pub(super) place: Result<Window, TurnedAway>,
    pub(super) what: T,
}

/// Where a call goes on arrival.
#[derive(Debug, PartialEq)]
pub(super) enum Place {
    Served(Window),
    Waits(Ticket),
    Full,
}

impl<T> Stack<T> {
    pub(super) fn new(servers: u32, queue: u32, patience: Option<Duration>) -> Stack<T> {
        assert!(servers > 0, "a downstream without servers answers nothing");
        Stack {
            servers,
            left: servers,
            busy: BinaryHeap::new(),
            waiting: VecDeque::new(),
            queue: queue as usize,
            patience,
            tickets: 0,
            released: Vec::new(),
        }
    }

    /// Calls that are worked on or wait.
    pub(super) fn in_house(&self) -> usize {
        self.busy.len() + self.waiting.len()
    }

    /// Takes a call that arrives `now`, on `left` servers. A full queue gives up its oldest call for it.
    pub(super) fn admit(&mut self, now: Instant, work: Duration, left: u32, what: T) -> Place {
        self.advance(now);
        self.left = left.clamp(1, self.servers);
        if self.busy.len() < self.left as usize && self.waiting.is_empty() {
            return Place::Served(self.start(now, work));
        }
        if self.queue == 0 {
            return Place::Full;
        }
        if self.waiting.len() >= self.queue
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.turn_away(oldest, now, TurnedAway::Full);
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.waiting.push_back(Waiting { ticket, since: now, work, what });
        Place::Waits(ticket)
    }

    /// When a waiting call can next be released; `None` if nobody waits.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let oldest = self.waiting.front()?;
        let expires = self.patience.map_or(Instant::FAR, |patience| oldest.since + patience);
        let free = self.busy.peek().map_or(Instant::START, |Reverse(free)| *free);
        Some(expires.min(free))
    }

    /// Those that were released up to `now`.
    pub(super) fn release(&mut self, now: Instant) -> Vec<Released<T>> {
        self.advance(now);
        std::mem::take(&mut self.released)
    }

    /// Plays everything up to `now`, in order of time: servers fall free, the newest call is taken, the oldest expire.
    fn advance(&mut self, now: Instant) {
        loop {
            let free = self.busy.peek().map(|Reverse(free)| *free).filter(|free| *free <= now);
            let at = free.unwrap_or(now);
            self.expire(at);
            if free.is_some() {
                self.busy.pop();
            }
            let Some(next) = self.waiting.pop_back_if(|_| self.busy.len() < self.left as usize) else {
                if free.is_none() {
                    return;
                }
                continue;
            };
            let place = Ok(self.start(at.max(next.since), next.work));
            self.released.push(Released { ticket: next.ticket, at, place, what: next.what });
        }
    }

    fn expire(&mut self, at: Instant) {
        let Some(patience) = self.patience else { return };
        while let Some(oldest) = self.waiting.pop_front_if(|oldest| oldest.since + patience <= at) {
            let expired = oldest.since + patience;
            self.turn_away(oldest, expired, TurnedAway::Shed);
        }
    }

    fn turn_away(&mut self, oldest: Waiting<T>, at: Instant, why: TurnedAway) {
        self.released.push(Released { ticket: oldest.ticket, at, place: Err(why), what: oldest.what });
    }

    fn start(&mut self, at: Instant, work: Duration) -> Window {
        let window = Window { from: at, until: at + work };
        self.busy.push(Reverse(window.until));
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn stack(queue: u32, patience: Option<u64>) -> Stack<u64> {
        Stack::new(1, queue, patience.map(Duration::from_millis))
    }

    const WORK: Duration = Duration::from_millis(10);

    fn order(stack: &mut Stack<u64>, until: u64) -> Vec<(u64, bool, u64)> {
        let released = stack.release(at(until)).into_iter();
        released.map(|r| (r.what, r.place.is_ok(), r.at.as_nanos() / 1_000_000)).collect()
    }

    #[test]
    fn the_newest_is_served_first() {
        let mut stack = stack(10, None);
        assert!(matches!(stack.admit(at(0), WORK, 1, 0), Place::Served(_)));
        for n in 1..=3 {
            assert!(matches!(stack.admit(at(n), WORK, 1, n), Place::Waits(_)));
        }
        assert_eq!(stack.wake_at(), Some(at(10)));
        assert_eq!(order(&mut stack, 15), [(3, true, 10)]);
        stack.admit(at(16), WORK, 1, 4);
        assert_eq!(order(&mut stack, 100), [(4, true, 20), (2, true, 30), (1, true, 40)]);
        assert_eq!((stack.in_house(), stack.wake_at()), (0, None));
    }

    #[test]
    fn a_full_queue_gives_the_oldest_place_to_the_newest_call() {
        let mut stack = stack(2, None);
        for n in 0..=3 {
            stack.admit(at(n), WORK, 1, n);
        }
        assert_eq!(order(&mut stack, 3), [(1, false, 3)]);
        assert_eq!(stack.in_house(), 3);
    }

    #[test]
    fn who_waits_too_long_is_shed_on_time() {
        let mut stack = stack(10, Some(15));
        for n in 0..=3 {
            stack.admit(at(n), WORK, 1, n);
        }
        assert_eq!(order(&mut stack, 18), [(3, true, 10), (1, false, 16), (2, false, 17)]);
    }
}
