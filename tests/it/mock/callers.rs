//! simq's own callers see each failure for what it is, and look at the body.

use std::sync::Arc;
use std::time::Duration;

use simq::call::Outcome;
use simq::downstream::{Discipline, Downstream, Mode, Outage, RateLimit, Settings};
use simq::job::JobId;
use simq::queue::Token;
use simq::real::{Caller, Clock, Mock, Setup};
use simq::rng::Seed;
use simq::time::Window;
use simq::worker::Request;

/// An hour, for what is to last.
const LONG: Duration = Duration::from_secs(3600);

fn request(job: u64, timeout: Duration) -> Request {
    let (kind, payload): (Arc<str>, Arc<str>) = ("email".into(), "{}".into());
    Request { token: Token(i64::try_from(job).unwrap()), job: JobId(job), attempt: 1, kind, payload, timeout }
}

fn start(settings: Settings) -> Mock {
    Mock::start(Downstream::new(settings, Seed(1)), Clock::starting_in(Duration::ZERO), &Setup::of_a_run()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn sees(mode: Mode, timeout: Duration) -> Outcome {
    let outages = vec![Outage::plain(Window::starting(Duration::ZERO, LONG), mode)];
    let mock = start(Settings { servers: 4, outages, ..Settings::default() });
    let caller = Caller::new(mock.address());
    runtime().block_on(caller.call(0, &request(1, timeout)))
}

#[test]
fn callers_tell_failures_apart() {
    let hint = Some(Duration::from_secs(3));
    for (mode, outcome) in [
        (Mode::Unavailable { retry_after: hint, dated: false }, Outcome::Status { code: 503, retry_after: hint }),
        (Mode::Unavailable { retry_after: hint, dated: true }, Outcome::Status { code: 503, retry_after: hint }),
        (Mode::Reset, Outcome::Reset),
        (Mode::Truncated, Outcome::Truncated),
        (Mode::Garbage, Outcome::Garbage),
        (Mode::Maintenance, Outcome::WrongBody),
        (Mode::Permanent { code: 400 }, Outcome::status(400)),
        (Mode::SlowBody { takes: Duration::from_millis(5) }, Outcome::Ok),
        (Mode::RateLimit(RateLimit::bucket(1.0, 1, LONG)), Outcome::Ok),
    ] {
        assert_eq!(sees(mode, LONG), outcome, "{mode:?}");
    }
    for mode in [Mode::Hang, Mode::SlowBody { takes: LONG }] {
        assert_eq!(sees(mode, Duration::from_millis(50)), Outcome::TimedOut, "{mode:?}");
    }
    assert_eq!(sees(Mode::Refuse, LONG), Outcome::Refused);
}

#[test]
fn a_last_in_first_out_queue_serves_all_and_keeps_a_record_of_it() {
    let latency = simq::dist::Dist::Constant { value: Duration::from_millis(2) };
    let mock = start(Settings { discipline: Discipline::Lifo, latency, ..Settings::default() });
    let caller = Caller::new(mock.address());
    runtime().block_on(async {
        let calls: Vec<Request> = (0..20).map(|job| request(job, LONG)).collect();
        let outcomes = futures_util::future::join_all(calls.iter().map(|request| caller.call(0, request))).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Ok), "{outcomes:?}");
    });
    let conduct = mock.stop();
    assert_eq!((conduct.arrivals, conduct.services.len()), (20, 20));
    assert!(conduct.services.iter().all(|service| service.work.is_some() && service.outcome == Some(Outcome::Ok)));
}
