//! The sink that turns a worker's steps into attempts and counts.
//!
//! One recorder belongs to one worker, or to all workers of one thread: recording takes no lock. They are merged when the run is over. An
//! attempt lives in one worker from claim to settlement, so nothing has to be matched across recorders.

use std::num::NonZero;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Attempt, Fate};
use crate::job::JobId;
use crate::journal::{Entry, Sink, What};
use crate::queue::{Claimed, How, Settled, Settlement, Token, Tokens};
use crate::time::{Instant, Window};
use crate::worker::{Command, Event, Operation, Request};

/// Puts a duration into a histogram of microseconds, which grows as it must.
pub fn record(histogram: &mut Histogram<u64>, duration: Duration) {
    histogram.record(duration.as_micros() as u64).expect("it grows as it must");
}

/// An empty histogram of microseconds with 3 significant digits; grows as it must.
pub fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("3 is a valid number of digits");
    histogram.auto(true);
    histogram
}

/// Attempts and counts, as they come in.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    open: Tokens<Open>,
    attempts: Vec<Attempt>,
    /// By worker.
    claim_asked: Vec<Instant>,
    tally: Tally,
}

/// What is counted beside the attempts.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Claims that were answered.
    pub claims: u64,
    /// Claims that found nothing.
    pub empty_claims: u64,
    /// Calls sent.
    pub sent: u64,
    /// Jobs completed.
    pub completed: u64,
    /// Jobs discarded by a settlement.
    pub discarded: u64,
    /// Jobs discarded because their last lease expired.
    pub reaped: u64,
    /// Jobs given back because their lease expired.
    pub returned: u64,
    /// Attempts whose lease had been lost.
    pub lost: u64,
    /// Times that the store did not answer.
    pub store_failures: u64,
    /// When that was, worker by worker.
    pub failed_at: Vec<Instant>,
    /// When claims were under way.
    pub claim_windows: Vec<Window>,
    /// Claim asked for to claim answered, in microseconds.
    pub claim_latency: Histogram<u64>,
    /// Settlement asked for to settlement confirmed, in microseconds.
    pub settle_latency: Histogram<u64>,
}

/// A claim that is not settled yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    job: JobId,
    attempt: u32,
    worker: u32,
    due: Instant,
    claimed: Instant,
    /// The place of its attempt, once it is sent.
    place: Option<NonZero<u32>>,
    settle_asked: Instant,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            claims: 0,
            empty_claims: 0,
            sent: 0,
            completed: 0,
            discarded: 0,
            reaped: 0,
            returned: 0,
            lost: 0,
            store_failures: 0,
            failed_at: Vec::new(),
            claim_windows: Vec::new(),
            claim_latency: histogram(),
            settle_latency: histogram(),
        }
    }
}

impl Tally {
    /// Jobs that are known to have ended.
    pub fn ended(&self) -> u64 {
        self.completed + self.discarded + self.reaped
    }

    /// Of nothing; its histograms are too coarse for anything, and as small as can be.
    pub(super) fn empty() -> Tally {
        let none = || Histogram::new(0).expect("0 is a valid number of digits");
        Tally { claim_latency: none(), settle_latency: none(), ..Tally::default() }
    }

    fn add(&mut self, other: &Tally) {
        self.claims += other.claims;
        self.empty_claims += other.empty_claims;
        self.sent += other.sent;
        self.completed += other.completed;
        self.discarded += other.discarded;
        self.reaped += other.reaped;
        self.returned += other.returned;
        self.lost += other.lost;
        self.store_failures += other.store_failures;
        self.failed_at.extend_from_slice(&other.failed_at);
        self.claim_windows.extend_from_slice(&other.claim_windows);
        self.claim_latency.add(&other.claim_latency).expect("histograms grow as they must");
        self.settle_latency.add(&other.settle_latency).expect("histograms grow as they must");
    }
}

impl Recorder {
    /// The counts so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The worker was killed, and with it whatever it had under way. Says which claims those were.
    pub fn die(&mut self) -> Vec<Token> {
        self.kill(|_| true);
        self.open.iter().map(|(token, _)| token).collect()
    }

    /// As [`Recorder::die`], of one worker of several.
    pub fn bury(&mut self, worker: u32) {
        self.kill(|open| open.worker == worker);
    }

    fn kill(&mut self, whose: impl Fn(&Open) -> bool) {
        for (_, open) in self.open.iter().filter(|(_, open)| whose(open)) {
            if let Some(attempt) = sent(&mut self.attempts, open) {
                attempt.fate = Fate::Killed;
            }
        }
    }

    /// All recorders of a run as one: its attempts in the order in which they were sent, and its counts.
    pub fn merge(recorders: Vec<Recorder>) -> (Vec<Attempt>, Tally) {
        let mut tally = Tally::default();
        let mut attempts = Vec::new();
        for recorder in recorders {
            tally.add(&recorder.tally);
            if attempts.is_empty() {
                attempts = recorder.attempts;
            } else {
                attempts.extend(recorder.attempts);
            }
        }
        // Each recorder's are in about this order already.
        attempts.sort_by_key(|attempt| (attempt.sent, attempt.job, attempt.attempt));
        (attempts, tally)
    }

    fn claimed(&mut self, at: Instant, worker: u32, claimed: &Claimed) {
        self.tally.claims += 1;
        self.tally.empty_claims += u64::from(claimed.claims.is_empty());
        let asked = self.claim_asked.get(worker as usize).copied().unwrap_or_default();
        record(&mut self.tally.claim_latency, at.since(asked));
        self.tally.claim_windows.push(Window { from: asked, until: at });
        for claim in &claimed.claims {
            let open = Open {
                job: claim.job,
                attempt: claim.memory.attempt(),
                worker,
                due: at.before(claim.lag),
                claimed: at,
                place: None,
                settle_asked: at,
            };
            self.open.insert(claim.token, open);
        }
    }

    fn claiming(&mut self, at: Instant, worker: u32) {
        let place = worker as usize;
        if place >= self.claim_asked.len() {
            self.claim_asked.resize(place + 1, Instant::START);
        }
        self.claim_asked[place] = at;
    }

    fn called(&mut self, at: Instant, request: &Request) {
        self.tally.sent += 1;
        if let Some(open) = self.open.get_mut(request.token) {
            let Open { job, attempt, worker, due, claimed, .. } = *open;
            let fate = Fate::Open;
            self.attempts.push(Attempt {
                job,
                attempt,
                worker,
                due,
                claimed,
                sent: at,
                answered: None,
                settled: None,
                outcome: None,
                fate,
            });
            open.place = u32::try_from(self.attempts.len()).ok().and_then(NonZero::new);
        }
    }

    fn settling(&mut self, at: Instant, settlements: &[Settlement]) {
        for settlement in settlements {
            let Some(open) = self.open.get_mut(settlement.token) else { continue };
            open.settle_asked = at;
            if let Some(attempt) = sent(&mut self.attempts, open) {
                attempt.fate = match settlement.how {
                    How::Complete => Fate::Completed,
                    How::Retry { after, .. } => Fate::Retried(after),
                    How::Discard { why, .. } => Fate::Discarded(why),
                    How::Release => Fate::Open,
                };
            }
        }
    }

    fn settled(&mut self, at: Instant, settled: &Settled) {
        for token in &settled.settled {
            let Some(open) = self.open.remove(*token) else { continue };
            record(&mut self.tally.settle_latency, at.since(open.settle_asked));
            if let Some(attempt) = sent(&mut self.attempts, &open) {
                attempt.settled = Some(at);
                self.tally.completed += u64::from(attempt.fate == Fate::Completed);
                self.tally.discarded += u64::from(matches!(attempt.fate, Fate::Discarded(_)));
            }
        }
        for token in &settled.lost {
            let Some(open) = self.open.remove(*token) else { continue };
            self.tally.lost += 1;
            if let Some(attempt) = sent(&mut self.attempts, &open) {
                (attempt.fate, attempt.settled) = (Fate::Lost, Some(at));
            }
        }
    }
}

/// The attempt that was made of a claim; `None` if its call was never sent.
fn sent<'a>(attempts: &'a mut [Attempt], open: &Open) -> Option<&'a mut Attempt> {
    attempts.get_mut(open.place?.get() as usize - 1)
}

impl Sink for Recorder {
    fn record(&mut self, entry: Entry<'_>) {
        let What::Stepped { worker, event, commands } = entry.what else { return };
        match event {
            Event::Claimed(claimed) => self.claimed(entry.at, worker, claimed),
            Event::Replied { token, outcome } => {
                if let Some(attempt) = self.open.get_mut(*token).and_then(|open| sent(&mut self.attempts, open)) {
                    (attempt.answered, attempt.outcome) = (Some(entry.at), Some(*outcome));
                }
            }
            Event::Settled(settled) => self.settled(entry.at, settled),
            Event::Reaped { returned, discarded } => {
                self.tally.returned += returned;
                self.tally.reaped += discarded;
            }
            Event::Failed(Operation::Claim | Operation::Settle { .. } | Operation::Extend | Operation::Reap) => {
                self.tally.store_failures += 1;
                self.tally.failed_at.push(entry.at);
            }
            Event::Started | Event::Woke | Event::Notified | Event::Extended { .. } | Event::Drain => {}
        }
        for command in commands {
            match command {
                Command::Claim { .. } => self.claiming(entry.at, worker),
                Command::Call(request) => self.called(entry.at, request),
                Command::Settle { settlements, .. } => self.settling(entry.at, settlements),
                Command::Extend { .. } | Command::Reap | Command::Remind { .. } => {}
            }
        }
    }
}
