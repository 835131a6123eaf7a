//! Every kind of outage, as real workers meet it.
//!
//! What is said here holds for the calls that were certainly inside the window, sent after its start and answered before its
//! end, whatever else the machine does; and there must have been some.

use std::time::Duration;

use simq::call::Outcome as Answer;
use simq::metrics::{Attempt, Fate};
use simq::real::Outcome;
use simq::rng::Stream;
use simq::time::Window;

use crate::play::{HEALTHY, PATIENT, answer, assert_all_completed, attempts_by_job, count, jobs, ms, play, scenario};

fn outage(window: &str, mode: &str) -> String {
    format!("[[downstream.outage]]\n{window}\nmode = {mode}\n")
}

/// Calls that arrived inside the window: sent after its start, answered before its end.
fn inside(outcome: &Outcome, window: Window) -> Vec<Attempt> {
    let sure = |attempt: &&Attempt| attempt.sent >= window.from && attempt.answered.is_some_and(|at| at < window.until);
    let calls: Vec<Attempt> = outcome.record.attempts.iter().filter(sure).copied().collect();
    assert!(!calls.is_empty(), "no call met the outage");
    calls
}

/// Calls that arrived outside.
fn outside(outcome: &Outcome, window: Window) -> Vec<Attempt> {
    let sure = |attempt: &&Attempt| attempt.sent >= window.until || attempt.answered.is_some_and(|at| at < window.from);
    outcome.record.attempts.iter().filter(sure).copied().collect()
}

fn took(attempt: &Attempt) -> Duration {
    attempt.answered.expect("every call was answered").since(attempt.sent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_downstream_answers_503_until_its_window_ends() {
    let text =
        jobs(40, "") + HEALTHY + "client_timeout = '20s'\n" + &outage("at = '0s'\nlasts = '400ms'", "'unavailable'") + PATIENT;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let window = Window::starting(Duration::ZERO, ms(400));
    assert!(inside(&outcome, window).iter().all(|attempt| answer(attempt) == Answer::status(503)));
    assert!(outside(&outcome, window).iter().all(|attempt| answer(attempt) == Answer::Ok));
    assert_eq!(count(&outcome, Answer::Ok), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusing_downstream_is_not_reached_and_serves_on_the_same_port_again() {
    let arrival = "arrival = 'constant'\nrate = '200/s'";
    let text = jobs(300, arrival)
        + HEALTHY
        + "client_timeout = '20s'\n"
        + &outage("at = '700ms'\nlasts = '400ms'", "'refuse'")
        + PATIENT;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let window = Window::starting(ms(700), ms(400));
    // A call that is under way when the door closes is cut.
    let shut = |attempt: &Attempt| matches!(answer(attempt), Answer::Refused | Answer::Reset);
    assert!(inside(&outcome, window).iter().all(shut));
    let (ok, refused, cut) = (count(&outcome, Answer::Ok), count(&outcome, Answer::Refused), count(&outcome, Answer::Reset));
    assert_eq!((ok, ok + refused + cut), (300, outcome.record.attempts.len() as u64), "nothing else happened");
    assert!(refused > 0);
    let arrivals = outcome.record.arrivals_at_downstream;
    assert!((ok..=ok + cut).contains(&arrivals), "{arrivals} calls arrived, {ok} were served and {cut} cut");
    let before = outside(&outcome, window).iter().filter(|attempt| attempt.sent < window.from).count();
    assert!(before > 0, "it served before, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_hanging_downstream_time_out() {
    let text = jobs(30, "") + HEALTHY + "client_timeout = '150ms'\n" + &outage("at = '0s'\nlasts = '600ms'", "'hang'") + PATIENT;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let hung = inside(&outcome, Window::starting(Duration::ZERO, ms(600)));
    for attempt in &hung {
        assert_eq!(answer(attempt), Answer::TimedOut);
        assert!(took(attempt) >= ms(150), "{attempt:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_downstream_in_brownout_is_slower_and_fails_the_calls_it_must() {
    let mode = "'brownout'\nerror_rate = 0.5\nslowdown = 20";
    let text = jobs(60, "") + HEALTHY + "client_timeout = '20s'\n" + &outage("at = '0s'\nlasts = '600ms'", mode) + PATIENT;
    let scenario = scenario(&text);
    let outcome = play(&scenario).await;
    assert_all_completed(&outcome);
    let window = Window::starting(Duration::ZERO, ms(600));
    let slow = inside(&outcome, window);
    for attempt in &slow {
        assert!(took(attempt) >= ms(100), "20 times 5 ms: {attempt:?}");
        let fails = scenario.seed.draw(Stream::Fault, attempt.job, attempt.attempt).happens(0.5);
        assert_eq!(answer(attempt), if fails { Answer::status(500) } else { Answer::Ok });
    }
    assert!(slow.iter().any(|attempt| answer(attempt) == Answer::Ok));
    assert!(slow.iter().any(|attempt| answer(attempt) != Answer::Ok));
    assert!(outside(&outcome, window).iter().all(|attempt| answer(attempt) == Answer::Ok));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_heeds_retry_after_stays_away_from_a_rate_limit_as_long_as_it_is_asked_to() {
    let mode = "'rate-limit'\nrate = '10/s'\nburst = 5\nretry_after = '1s'";
    let policy = "[policy.heeding]\nkind = 'constant'\ndelay = '10ms'\njitter = 'full'\nretry_after = 'at-least'\n";
    let text = jobs(30, "") + HEALTHY + "client_timeout = '20s'\n" + &outage("at = '0s'\nlasts = '900ms'", mode) + policy;
    let outcome = play(&scenario(&text)).await;
    assert_all_completed(&outcome);
    let asked = Answer::Status { code: 429, retry_after: Some(Duration::from_secs(1)) };
    assert!(count(&outcome, asked) > 0, "the limit was met");
    for attempts in attempts_by_job(&outcome).values() {
        for pair in attempts.windows(2) {
            assert_eq!(answer(&pair[0]), asked);
            assert_eq!(pair[0].fate, Fate::Retried(Duration::from_secs(1)));
            assert!(pair[1].sent.since(pair[0].answered.unwrap()) >= Duration::from_secs(1), "{pair:?}");
        }
    }
    let passed = inside(&outcome, Window::starting(Duration::ZERO, ms(900)));
    assert!(passed.iter().filter(|attempt| answer(attempt) == Answer::Ok).count() <= 14, "5 at once, and 10 a second for 0.9 s");
}
