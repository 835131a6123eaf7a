//! A worker alone: what it asks for after each event.

use std::sync::Arc;

use super::*;
use crate::policy::{Backoff, Breaker, Clock, Rate, RateRule, Scope, Trip};
use crate::queue::ClaimMode;

const MS: Duration = Duration::from_millis(1);

fn worker(slots: u32, wait: Wait) -> Worker {
    with_policy(slots, wait, exponential())
}

fn exponential() -> Policy {
    Policy { backoff: Backoff::Exponential { base: Duration::from_secs(2), factor: 2.0 }, classify: true, ..Policy::default() }
}

fn with_policy(slots: u32, wait: Wait, policy: Policy) -> Worker {
    let settings =
        Settings { count: 1, slots, connections: 1, claim: ClaimMode::Lease, batch: slots, lease: Duration::from_secs(30), wait };
    Worker::new(0, settings, Duration::from_secs(1), policy, Seed(1))
}

fn due() -> Wait {
    Wait::Due { at_most: 200 * MS }
}

fn at(ms: u32) -> Instant {
    Instant::START + ms * MS
}

fn tell(worker: &mut Worker, ms: u32, event: Event) -> Vec<Command> {
    let mut out = Vec::new();
    worker.handle(at(ms), &event, &mut out);
    out
}

fn claims(tokens: std::ops::Range<i64>, next_due: Option<Duration>) -> Event {
    let claim = |token| Claim {
        job: JobId(token as u64),
        token: Token(token),
        kind: Arc::from("email"),
        payload: Arc::from("{}"),
        memory: Memory { retries: 0, max_retries: 3, last_delay: None, age: Duration::ZERO },
        lag: Duration::ZERO,
    };
    Event::Claimed(Claimed { claims: tokens.map(claim).collect(), next_due })
}

fn replied(token: i64, outcome: Outcome) -> Event {
    Event::Replied { token: Token(token), outcome }
}

fn settled(tokens: &[i64]) -> Event {
    Event::Settled(Settled { settled: tokens.iter().copied().map(Token).collect(), lost: vec![] })
}

fn kinds(commands: &[Command]) -> Vec<&'static str> {
    let name = |command: &Command| match command {
        Command::Claim { .. } => "claim",
        Command::Call(_) => "call",
        Command::Settle { .. } => "settle",
        Command::Remind { .. } => "remind",
        Command::Extend { .. } => "extend",
        Command::Reap => "reap",
    };
    commands.iter().map(name).collect()
}

fn remind(after: impl IntoIterator<Item = u32>) -> Command {
    Command::Remind { after: after.into_iter().map(|ms| ms * MS).collect() }
}

#[test]
fn starts_by_claiming_as_many_as_it_has_slots_and_has_the_next_worker_told_if_it_got_them() {
    let mut worker = worker(3, due());
    assert_eq!(tell(&mut worker, 0, Event::Started), [Command::Claim { limit: 3, lease: Duration::from_secs(30) }]);
    assert_eq!(kinds(&tell(&mut worker, 1, claims(1..4, None))), ["call", "call", "call", "remind"]);
    assert_eq!(worker.in_flight(), 3);
    assert!(!worker.has_room());
}

#[test]
fn replies_of_one_instant_are_settled_together_and_the_next_gather_while_that_is_out() {
    let mut worker = worker(4, due());
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 1, claims(1..5, None));
    assert_eq!(kinds(&tell(&mut worker, 2, replied(1, Outcome::Ok))), [""; 0]);
    assert_eq!(kinds(&tell(&mut worker, 2, replied(2, Outcome::Ok))), [""; 0]);
    assert_eq!(worker.wake_at(), Some(at(2)), "as soon as nothing else happens");
    let first = tell(&mut worker, 2, Event::Woke);
    assert!(matches!(&first[..], [Command::Settle { number: 1, settlements }] if settlements.len() == 2), "{first:?}");
    tell(&mut worker, 3, replied(3, Outcome::Ok));
    assert_eq!(kinds(&tell(&mut worker, 3, Event::Woke)), [""; 0]);
    let next = tell(&mut worker, 5, settled(&[1, 2]));
    assert!(matches!(&next[0], Command::Settle { number: 2, settlements } if settlements.len() == 1), "{next:?}");
    assert_eq!(next[1], Command::Claim { limit: 2, lease: Duration::from_secs(30) }, "a full claim is followed by another");
}

#[test]
fn sleeps_as_long_as_it_may_and_has_somebody_told_when_the_next_job_is_due() {
    let mut worker = worker(1, due());
    tell(&mut worker, 0, Event::Started);
    assert_eq!(tell(&mut worker, 10, claims(0..0, Some(30 * MS))), [remind([30])]);
    assert_eq!(worker.wake_at(), Some(at(210)));
    assert_eq!(kinds(&tell(&mut worker, 40, Event::Notified)), ["claim"]);
    tell(&mut worker, 41, claims(0..0, None));
    assert_eq!(worker.wake_at(), Some(at(241)));
}

#[test]
fn each_retry_is_a_reminder_for_whoever_has_room_then() {
    let mut worker = worker(2, due());
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 1, claims(1..3, None));
    tell(&mut worker, 2, replied(1, Outcome::status(503)));
    tell(&mut worker, 2, replied(2, Outcome::Ok));
    tell(&mut worker, 2, Event::Woke);
    let out = tell(&mut worker, 4, settled(&[1, 2]));
    assert!(out.contains(&remind([2000])), "{out:?}");
}

#[test]
fn what_it_is_told_while_a_claim_is_out_makes_it_claim_again() {
    let mut worker = worker(2, due());
    tell(&mut worker, 0, Event::Started);
    assert_eq!(kinds(&tell(&mut worker, 1, Event::Notified)), [""; 0]);
    assert_eq!(kinds(&tell(&mut worker, 2, claims(0..0, None))), ["claim"], "the claim may have been too early to see it");
    assert_eq!(kinds(&tell(&mut worker, 3, claims(0..0, None))), [""; 0]);
}

#[test]
fn polls_at_its_period_and_drains_what_it_finds_without_waiting() {
    let mut worker = worker(4, Wait::Poll { every: 200 * MS });
    assert_eq!(kinds(&tell(&mut worker, 0, Event::Started)), [""; 0]);
    let phase = worker.wake_at().expect("it will poll");
    assert!(phase < at(200), "a phase within the first period");
    assert_eq!(kinds(&tell(&mut worker, 200, Event::Woke)), ["claim"]);
    assert_eq!(kinds(&tell(&mut worker, 201, claims(1..2, None))), ["call", "claim"], "it found some: it asks for more");
    tell(&mut worker, 202, claims(0..0, Some(MS)));
    tell(&mut worker, 203, replied(1, Outcome::status(503)));
    tell(&mut worker, 203, Event::Woke);
    assert_eq!(kinds(&tell(&mut worker, 204, settled(&[1]))), [""; 0], "a poller does not look at due times");
    assert_eq!(worker.wake_at(), Some(at(402)));
}

#[test]
fn extends_what_is_under_way_every_third_of_the_lease() {
    let mut worker = worker(2, due());
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 0, claims(1..3, None));
    let out = tell(&mut worker, 10_000, Event::Woke);
    let extend = Command::Extend { claims: vec![(JobId(1), Token(1)), (JobId(2), Token(2))], lease: Duration::from_secs(30) };
    assert!(out.contains(&extend), "{out:?}");
}

#[test]
fn a_failed_settle_is_sent_again_as_it_was_after_a_pause() {
    let mut worker = worker(2, due());
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 1, claims(1..3, None));
    tell(&mut worker, 2, replied(1, Outcome::Ok));
    let out = tell(&mut worker, 2, Event::Woke);
    let Command::Settle { number, settlements } = out[0].clone() else { panic!("{out:?}") };
    tell(&mut worker, 3, replied(2, Outcome::Ok));
    let failed = Event::Failed(Operation::Settle { number, settlements: settlements.clone() });
    assert_eq!(kinds(&tell(&mut worker, 3, failed)), [""; 0]);
    let again = worker.wake_at().expect("it will try again");
    assert!(again >= at(28) && again <= at(53), "{again:?}");
    assert_eq!(tell(&mut worker, 53, Event::Woke), [Command::Settle { number, settlements }], "not with what came in meanwhile");
    let next = tell(&mut worker, 54, settled(&[1]));
    assert!(matches!(&next[0], Command::Settle { number: 2, settlements } if settlements[0].token == Token(2)), "{next:?}");
}

#[test]
fn a_store_that_keeps_failing_is_asked_ever_less_often() {
    let mut worker = worker(1, due());
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 0, Event::Failed(Operation::Claim));
    let mut now = 0;
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        if kinds(&tell(&mut worker, now, Event::Woke)).contains(&"claim") {
            tell(&mut worker, now, Event::Failed(Operation::Claim));
        }
        let wake = worker.wake_at().expect("it will try again");
        longest = longest.max(wake.since(at(now)));
        assert!(wake.since(at(now)) <= LONGEST_PAUSE);
        now = wake.as_nanos().div_ceil(1_000_000) as u32;
    }
    assert!(longest >= LONGEST_PAUSE / 2, "{longest:?}");
}

#[test]
fn a_drained_worker_finishes_its_work_and_hands_late_claims_back() {
    let mut worker = worker(2, due());
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 1, claims(1..2, None));
    tell(&mut worker, 2, Event::Notified);
    assert_eq!(kinds(&tell(&mut worker, 3, Event::Drain)), [""; 0]);
    let out = tell(&mut worker, 4, claims(2..3, None));
    assert!(matches!(&out[0], Command::Settle { settlements, .. } if settlements[0].how == How::Release), "{out:?}");
    tell(&mut worker, 5, settled(&[2]));
    assert!(!worker.is_idle());
    tell(&mut worker, 6, replied(1, Outcome::Ok));
    assert_eq!(kinds(&tell(&mut worker, 6, Event::Woke)), ["settle"]);
    assert_eq!(kinds(&tell(&mut worker, 7, settled(&[1]))), [""; 0], "no new claim");
    assert!(worker.is_idle() && worker.wake_at().is_none());
}

/// The delays of the retries that these commands settle.
fn delays(commands: &[Command]) -> Vec<Duration> {
    let batches = commands.iter().filter_map(|command| match command {
        Command::Settle { settlements, .. } => Some(settlements),
        _ => None,
    });
    let delay = |settlement: &Settlement| match settlement.how {
        How::Retry { after, .. } => Some(after),
        _ => None,
    };
    batches.flatten().filter_map(delay).collect()
}

/// Told of a reply, and that nothing else happens at that moment.
fn tell_of(worker: &mut Worker, ms: u32, reply: Event) -> Vec<Command> {
    assert_eq!(tell(worker, ms, reply), []);
    tell(worker, ms, Event::Woke)
}

/// T-40: a delay counts from the failure, however long the attempt took. T-41: from the claim, a slow attempt uses it up.
#[test]
fn t40_a_delay_counts_from_the_failure_unless_the_policy_says_from_the_claim() {
    for (base, waits) in [(ClockBase::Failure, 2000), (ClockBase::Claim, 500)] {
        let policy = Policy { clock: Clock { base, ..Clock::default() }, ..exponential() };
        let mut worker = with_policy(1, due(), policy);
        tell(&mut worker, 0, Event::Started);
        tell(&mut worker, 100, claims(1..2, None));
        assert_eq!(delays(&tell_of(&mut worker, 1600, replied(1, Outcome::status(503)))), [waits * MS], "{base:?}");
    }
    let policy = Policy { clock: Clock { base: ClockBase::Claim, ..Clock::default() }, ..exponential() };
    let mut worker = with_policy(1, due(), policy);
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 0, claims(1..2, None));
    assert_eq!(delays(&tell_of(&mut worker, 60_000, replied(1, Outcome::status(503)))), [Duration::ZERO], "long overdue");
}

/// T-09, T-42: retries come due when the promoter looks, so jitter below its quantum shows no benefit.
#[test]
fn t09_a_quantum_brings_all_retries_within_it_together() {
    let policy = Policy {
        backoff: Backoff::Constant { delay: Duration::from_secs(1) },
        jitter: crate::policy::Jitter::Proportional { share: 0.5 },
        clock: Clock { quantum: Duration::from_secs(5), ..Clock::default() },
        ..exponential()
    };
    let mut worker = with_policy(50, due(), policy);
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 0, claims(1..51, None));
    for token in 1..51 {
        tell(&mut worker, 100, replied(token, Outcome::status(503)));
    }
    let dues = delays(&tell(&mut worker, 100, Event::Woke));
    assert_eq!(dues.len(), 50);
    assert!(dues.iter().all(|due| *due == 4900 * MS), "{dues:?}");
}

#[test]
fn an_open_breaker_holds_claimed_attempts_and_spends_no_retry() {
    let breaker = Breaker {
        trip: Trip::Consecutive { failures: 1 },
        open: 1000 * MS,
        jitter: 0.0,
        probes: 1,
        on: vec![],
        scope: Scope::Worker,
    };
    let mut worker = with_policy(3, Wait::Due { at_most: 60_000 * MS }, Policy { breaker: Some(breaker), ..exponential() });
    tell(&mut worker, 0, Event::Started);
    tell(&mut worker, 0, claims(1..2, None));
    tell_of(&mut worker, 10, replied(1, Outcome::TimedOut));
    tell(&mut worker, 11, settled(&[1]));
    tell(&mut worker, 12, Event::Notified);
    assert_eq!(kinds(&tell(&mut worker, 20, claims(2..4, None))), [""; 0], "two attempts, no call");
    assert_eq!(worker.wake_at(), Some(at(1010)));
    assert_eq!(kinds(&tell(&mut worker, 1010, Event::Woke)), ["call"], "one probe");
    let out = tell_of(&mut worker, 1020, replied(2, Outcome::Ok));
    assert!(kinds(&out).contains(&"settle"));
    let again = worker.wake_at().expect("the other is held");
    assert!(kinds(&tell(&mut worker, again.as_nanos().div_ceil(1_000_000) as u32, Event::Woke)).contains(&"call"));
}

#[test]
fn held_attempts_are_handed_back_when_it_drains() {
    let rate = Rate { rule: RateRule::Fixed { rate: 1.0, burst: 1 }, scope: Scope::Worker };
    let mut worker = with_policy(2, due(), Policy { rate: Some(rate), ..exponential() });
    tell(&mut worker, 0, Event::Started);
    assert_eq!(kinds(&tell(&mut worker, 0, claims(1..3, None))), ["call", "remind"]);
    let out = tell(&mut worker, 1, Event::Drain);
    assert!(matches!(&out[..], [Command::Settle { settlements, .. }] if settlements[0].how == How::Release), "{out:?}");
}
