//! Each check, on a sound record and on one with the fault planted.

use super::*;
use crate::job::Why;
use crate::metrics::{Blow, Service, Target};
use crate::time::Window;

const LEASE: Duration = Duration::from_millis(500);
const TERMS: Terms = Terms { complete: true, lease: Some(LEASE) };

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn status(code: u16) -> Outcome {
    Outcome::Status { code, retry_after: None }
}

fn attempt(job: u64, number: u32, worker: u32, (claimed, settled): (u64, u64), fate: Fate) -> Attempt {
    let outcome = if fate == Fate::Completed { Outcome::Ok } else { status(503) };
    Attempt {
        job: JobId(job),
        attempt: number,
        worker,
        due: at(claimed),
        claimed: at(claimed),
        sent: at(claimed),
        answered: Some(at(settled - 5)),
        settled: Some(at(settled)),
        outcome: Some(outcome),
        fate,
    }
}

fn job(id: u64, state: State, retries: u32) -> JobRecord {
    JobRecord {
        job: JobId(id),
        group: 0,
        arrived: at(0),
        malformed: false,
        state,
        why: (state == State::Discarded).then_some(Why::Exhausted),
        retries,
        last_due: Some(Duration::ZERO),
        finished: state.is_terminal().then(|| at(900)),
    }
}

/// Job 1 is done at the second attempt, job 2 is given up after two, job 3's first worker died with it, and job 4's stood still past its lease.
fn sound() -> RunRecord {
    let retried = Fate::Retried(Duration::from_millis(50));
    let killed = Attempt { answered: None, settled: None, outcome: None, ..attempt(3, 1, 1, (10, 20), Fate::Killed) };
    let paused = Attempt { outcome: Some(Outcome::Ok), ..attempt(4, 1, 2, (10, 900), Fate::Lost) };
    let attempts = vec![
        attempt(1, 1, 0, (10, 40), retried),
        attempt(1, 2, 1, (100, 130), Fate::Completed),
        attempt(2, 1, 0, (10, 40), retried),
        attempt(2, 2, 0, (100, 130), Fate::Discarded(Why::Exhausted)),
        killed,
        attempt(3, 2, 0, (600, 650), Fate::Completed),
        paused,
        attempt(4, 2, 0, (600, 650), Fate::Completed),
    ];
    let service = |attempt: &Attempt| Service {
        job: attempt.job,
        attempt: attempt.attempt,
        arrived: attempt.sent,
        work: None,
        outcome: attempt.outcome,
    };
    let services = attempts.iter().map(service).collect();
    let jobs =
        vec![job(1, State::Completed, 1), job(2, State::Discarded, 1), job(3, State::Completed, 1), job(4, State::Completed, 1)];
    let mut record = RunRecord { attempts, services, jobs, ended: at(900), ..RunRecord::default() };
    record.tally.returned = 2;
    record
}

/// What the audit says of the sound record after this was done to it.
fn planted(fault: impl FnOnce(&mut RunRecord)) -> Vec<String> {
    let mut record = sound();
    fault(&mut record);
    audit(&record, TERMS)
}

fn found(breaches: &[String], words: &str) {
    assert!(breaches.len() == 1 && breaches[0].contains(words), "{breaches:?} should be one that says {words:?}");
}

#[test]
fn a_sound_run_has_no_breach_though_calls_were_made_again() {
    assert_eq!(planted(|_| {}), [""; 0]);
    assert_eq!(super::super::repeats(&sound()).len(), 2);
}

#[test]
fn a_job_that_is_missing_or_twice_there_or_a_stranger_is_found() {
    let ids = |ids: &[u64]| ids.iter().copied().map(JobId).collect::<Vec<JobId>>();
    let check = |stored: &[u64], all_in| ledger(&ids(&[1, 2, 3]), &ids(stored), all_in);
    assert_eq!(check(&[3, 1, 2], true), [""; 0]);
    assert_eq!(check(&[1], false), [""; 0], "the others had not been put in");
    found(&check(&[1, 2], true), "job 3 was put in and is missing");
    found(&check(&[1, 2, 2, 3], false), "holds job 2 2 times");
    found(&check(&[1, 2, 3, 9], true), "job 9, which was never put in");
}

#[test]
fn a_job_that_is_left_behind_is_found() {
    for (state, words) in
        [(State::Running, "still claimed"), (State::Retryable, "still retryable"), (State::Available, "still available")]
    {
        let mut record = sound();
        record.attempts.retain(|attempt| attempt.job != JobId(1) || attempt.attempt == 1);
        record.services.retain(|service| service.job != JobId(1) || service.attempt == 1);
        record.jobs[0].state = state;
        found(&audit(&record, TERMS), words);
        assert_eq!(audit(&record, Terms { complete: false, ..TERMS }), [""; 0], "where the run was cut short it is no breach");
    }
}

#[test]
fn an_end_that_no_attempt_brought_about_is_found() {
    found(&planted(|record| record.jobs[1].state = State::Completed)[..1], "is completed after 0 completing and 1 discarding");
    found(&planted(|record| record.jobs[0].state = State::Retryable), "is retryable after 1 completing");
    let unanswered = planted(|record| {
        record.attempts[1].settled = None;
        record.attempts[1].outcome = None;
    });
    found(&unanswered, "is completed after 0 completing");
}

#[test]
fn a_settlement_of_which_nobody_was_told_may_have_been_carried_out() {
    assert_eq!(planted(|record| (record.attempts[1].settled, record.attempts[1].fate) = (None, Fate::Killed)), [""; 0]);
}

#[test]
fn an_attempt_made_twice_is_found() {
    let twice = |record: &mut RunRecord| {
        record.attempts.push(Attempt { worker: 3, ..record.attempts[0] });
        record.services.push(record.services[0]);
    };
    found(&planted(twice), "attempt 1 of job 1 was made by workers 0 and 3");
    let mut broken = sound();
    twice(&mut broken);
    (broken.attempts[0].fate, broken.attempts[0].settled) = (Fate::Killed, None);
    assert_eq!(audit(&broken, Terms { lease: None, ..TERMS }), [""; 0], "a transaction that broke took its attempt back");
    broken.attempts[0].answered = None;
    found(&audit(&broken, TERMS), "was made by workers 0 and 3");
}

#[test]
fn a_job_taken_from_a_live_lease_is_found() {
    found(
        &planted(|record| record.attempts[5].claimed = at(300)),
        "worker 0 took job 3 from worker 1, whose lease can't have run out",
    );
    found(&planted(|record| record.attempts[7].claimed = at(300)), "worker 0 took job 4 from worker 2");
    // The lease of a claim whose answer was long on its way began long before.
    let slow = |record: &mut RunRecord| {
        (record.attempts[4].claimed, record.attempts[5].claimed) = (at(250), at(600));
        record.tally.claim_windows.push(Window { from: at(10), until: at(250) });
    };
    assert_eq!(planted(slow), [""; 0]);
}

#[test]
fn a_job_done_again_after_its_end_is_found() {
    let again = |record: &mut RunRecord| {
        record.attempts.push(attempt(1, 3, 2, (700, 720), Fate::Lost));
        record.services.push(Service { attempt: 3, ..record.services[1] });
        record.jobs[0].retries = 2;
    };
    let breaches = planted(again);
    assert!(breaches[0].contains("job 1 was called for again by worker 2 after attempt 2 had ended it"), "{breaches:?}");
}

#[test]
fn a_call_that_no_worker_made_is_found() {
    let stranger = |record: &mut RunRecord| record.services.push(Service { attempt: 7, ..record.services[0] });
    found(&planted(stranger), "the downstream saw attempt 7 of job 1, which no worker made");
    let again = |record: &mut RunRecord| record.services.push(record.services[0]);
    found(&planted(again), "saw attempt 1 of job 1 2 times, and it was made 1 times");
    let user = |record: &mut RunRecord| record.services.push(Service { job: JobId(1 << 62), ..record.services[0] });
    assert_eq!(planted(user), [""; 0], "ordinary users call too");
}

#[test]
fn a_call_for_a_job_that_nobody_knows_is_found() {
    let stranger = |record: &mut RunRecord| record.attempts.push(Attempt { job: JobId(77), ..record.attempts[0] });
    found(&planted(stranger), "called for job 77, of which nothing is known");
}

#[test]
fn an_answer_that_was_never_given_is_found() {
    found(
        &planted(|record| record.services.retain(|service| (service.job, service.attempt) != (JobId(1), 1))),
        "had an answer for attempt 1 of job 1, which the downstream never saw",
    );
    found(
        &planted(|record| record.services[1].outcome = Some(status(500))),
        "job 1 is completed, and the downstream never answered it well",
    );
}

#[test]
fn a_row_that_miscounts_is_found() {
    found(&planted(|record| record.jobs[0].retries = 2), "job 1 ended with attempt 2, and its row says 2 retries");
    let mut record = sound();
    record.jobs[3] = job(4, State::Retryable, 0);
    record.attempts[7] = Attempt { settled: None, fate: Fate::Open, ..record.attempts[7] };
    found(&audit(&record, Terms { complete: false, ..TERMS }), "job 4 had an attempt 2, and its row says 0 retries");
}

#[test]
fn an_attempt_that_is_missing_without_a_reason_is_found() {
    let missing = |record: &mut RunRecord| {
        record.attempts.remove(0);
        record.services.remove(0);
    };
    assert_eq!(planted(missing), [""; 0], "a lease had run out: its claim's answer was lost");
    let calm = |record: &mut RunRecord| {
        missing(record);
        record.tally.returned = 0;
    };
    found(&planted(calm), "attempt 1 of job 1 was never made, and no lease had run out");
    let blow =
        Blow { what: "cut-connections", target: Target::Database, at: at(5), until: None, workers: vec![], hit: 1, failed: None };
    let cut = |record: &mut RunRecord| {
        calm(record);
        record.blows.push(blow);
    };
    assert_eq!(planted(cut), [""; 0]);
}

#[test]
fn a_thousand_breaches_are_cut_short() {
    let planned: Vec<JobId> = (0..1000).map(JobId).collect();
    let breaches = ledger(&planned, &[], true);
    assert_eq!((breaches.len(), breaches.last().map(String::as_str)), (51, Some("and 950 more breaches of the audit")));
}
