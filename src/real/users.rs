//! Ordinary users: an open loop of calls on the downstream, beside the jobs. They wait for nobody and do not retry.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::clock::Clock;
use super::http::Caller;
use crate::downstream;
use crate::job::JobId;
use crate::metrics::UserCall;
use crate::rng::{Seed, Stream};
use crate::time::{Instant, seconds};

/// The number of the first user's call: far from those of jobs.
const FIRST: u64 = 1 << 62;
/// The most calls under way; those beyond are counted as starved by this machine.
const UNDER_WAY: usize = 10_000;

/// Users that are there.
#[derive(Debug)]
pub(super) struct Users {
    coming: JoinHandle<()>,
    seen: Arc<Seen>,
}

#[derive(Debug)]
struct Seen {
    caller: Caller,
    calls: Mutex<Vec<UserCall>>,
    starved: Mutex<u64>,
}

/// What they saw.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) calls: Vec<UserCall>,
    /// Calls that this machine could not make.
    pub(super) starved: u64,
}

impl Users {
    /// Lets them come, from the start of the clock on.
    pub(super) fn come(users: downstream::Users, seed: Seed, address: SocketAddr, clock: Clock) -> Users {
        let seen = Arc::new(Seen { caller: Caller::new(address), calls: Mutex::default(), starved: Mutex::default() });
        Users { coming: tokio::spawn(come(users, seed, clock, seen.clone())), seen }
    }

    /// Nobody comes any more; what they saw. Calls under way stay without an answer.
    pub(super) fn leave(self) -> Report {
        self.coming.abort();
        let calls = std::mem::take(&mut *self.seen.calls.lock().expect("nobody panics while holding it"));
        let starved = *self.seen.starved.lock().expect("nobody panics while holding it") + self.seen.caller.starved();
        Report { calls, starved }
    }
}

/// A Poisson process: each gap is drawn by its number, so that users come at the same times under every policy.
async fn come(users: downstream::Users, seed: Seed, clock: Clock, seen: Arc<Seen>) {
    let room = Arc::new(Semaphore::new(UNDER_WAY));
    let route: Arc<str> = users.route.into();
    let mut planned = Instant::START;
    for n in 0.. {
        let number = JobId(FIRST + n);
        let unit = seed.draw(Stream::Users, number, 1).unit();
        planned = planned + seconds(-(1.0 - unit).ln() / users.rate);
        clock.sleep_until(planned).await;
        let Ok(place) = room.clone().try_acquire_owned() else {
            *seen.starved.lock().expect("nobody panics while holding it") += 1;
            continue;
        };
        let index = {
            let mut calls = seen.calls.lock().expect("nobody panics while holding it");
            calls.push(UserCall { number, planned, answered: None, outcome: None });
            calls.len() - 1
        };
        let (seen, route) = (seen.clone(), route.clone());
        tokio::spawn(async move {
            let outcome = seen.caller.visit(&route, number, users.timeout).await;
            let answered = Some(clock.now());
            if let Some(call) = seen.calls.lock().expect("nobody panics while holding it").get_mut(index) {
                (call.answered, call.outcome) = (answered, Some(outcome));
            }
            drop(place);
        });
    }
}
