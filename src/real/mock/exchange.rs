//! One request: handed to the model, and the model's reply made real.
//!
//! A request that names its job and attempt in simq's headers draws its luck by them; any other by the number of its arrival. The
//! first part of its path is the job type, and who calls is the header `simq-caller`, or else the address. A body is
//! looked at where it says it is JSON, or where simq sent it: one that is not JSON is malformed.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, DATE, RETRY_AFTER};
use hyper::{Request, Response};

use super::connection::{Ending, Line};
use super::state::Shared;
use crate::call::{Admission, Call, Label, Outcome, Reply};
use crate::job::JobId;
use crate::real::clock::Clock;
use crate::real::http::{ATTEMPT_HEADER, CALLER_HEADER, HEALTHY, JOB_HEADER};
use crate::time::Instant;

/// The largest request body that is read, in bytes, and how long it may take to come.
const LARGEST_BODY: usize = 64 * 1024;
const BODY_WITHIN: Duration = Duration::from_secs(10);

const FAILED: &[u8] = b"{\"ok\":false}";
const MAINTENANCE: &[u8] =
    b"<!doctype html><title>Maintenance</title><h1>We will be right back</h1><p>This service is being maintained.</p>\n";

/// An answer's body: whole, or in drops.
pub(super) type Answer = Either<Full<Bytes>, Dribble>;

pub(super) async fn answer(
    shared: Arc<Shared>,
    line: Arc<Line>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    let head = Head::of(&request, &line);
    let path = shared.logs().then(|| request.uri().path().to_owned());
    let body = Limited::new(request.into_body(), LARGEST_BODY).collect();
    let body = match tokio::time::timeout(BODY_WITHIN, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return Ok(refusal(&shared, 413)),
        Err(_) => return Ok(refusal(&shared, 408)),
    };
    let (mut visit, mut admission) = shared.admit(|number| head.call(number, &body), path);
    if let Reply::Waits(ticket) = admission.reply {
        admission = shared.released(ticket).await;
        visit.reply(&admission);
    }
    let (outcome, from, at) = match admission.reply {
        Reply::Answer { outcome, at } => (outcome, at, at),
        Reply::Slowly { outcome, from, at } => (outcome, from, at),
        // A refusal that reaches this place raced with the window's edge; the connection is about to be cut.
        Reply::Silence | Reply::Refuse | Reply::Waits(_) => std::future::pending().await,
    };
    shared.clock.sleep_until(from).await;
    let ending = match outcome {
        Outcome::Reset => Some(Ending::Reset),
        Outcome::Truncated => Some(Ending::Truncated),
        Outcome::Garbage => Some(Ending::Garbage),
        _ => None,
    };
    visit.answered(from);
    if let Some(ending) = ending {
        line.end(ending).await;
    }
    let dribble = (at > from).then(|| Dribble::new(shared.clock, from, at));
    Ok(response(&outcome, &admission, dribble))
}

/// What the head of a request says.
struct Head {
    job: Option<u64>,
    attempt: Option<u32>,
    route: Label,
    caller: Label,
    json: bool,
}

impl Head {
    fn of(request: &Request<Incoming>, line: &Line) -> Head {
        let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let job = text(JOB_HEADER).and_then(|job| job.parse().ok());
        let route = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
        Head {
            job,
            attempt: text(ATTEMPT_HEADER).and_then(|attempt| attempt.parse().ok()),
            route: if route.is_empty() { Label::NONE } else { Label::of(route) },
            caller: text(CALLER_HEADER).map_or(line.peer, Label::of),
            json: job.is_some() || text("content-type").is_some_and(|kind| kind.contains("json")),
        }
    }

    /// The call, which is the `number`-th to arrive.
    fn call(&self, number: u64, body: &[u8]) -> Call {
        let job = JobId(self.job.unwrap_or(number));
        let text = if self.json { std::str::from_utf8(body).unwrap_or("") } else { "{}" };
        Call { route: self.route, caller: self.caller, ..Call::new(job, self.attempt.unwrap_or(1), text) }
    }
}

/// An answer to a request that never reaches the model.
fn refusal(shared: &Shared, code: u16) -> Response<Answer> {
    shared.lock().bad_requests += 1;
    let mut response = response(&Outcome::status(code), &Admission::idle(Reply::Silence), None);
    response.headers_mut().insert(CONNECTION, hyper::header::HeaderValue::from_static("close"));
    response
}

fn response(outcome: &Outcome, admission: &Admission, dribble: Option<Dribble>) -> Response<Answer> {
    let (code, kind, body) = match *outcome {
        Outcome::Status { code, .. } => (code, "application/json", FAILED),
        Outcome::WrongBody => (200, "text/html; charset=utf-8", MAINTENANCE),
        _ => (200, "application/json", HEALTHY),
    };
    let mut builder = Response::builder().status(code).header(CONTENT_TYPE, kind);
    if let Outcome::Status { retry_after: Some(after), .. } = *outcome {
        // Whole seconds are all that the header can say: rounded up, so that nobody comes back too early.
        let after = Duration::from_secs(after.as_secs() + u64::from(after.subsec_nanos() > 0));
        builder = if admission.dated {
            // Counted from the answer's own date, which is in whole seconds as well.
            let now = SystemTime::now();
            builder.header(DATE, httpdate::fmt_http_date(now)).header(RETRY_AFTER, httpdate::fmt_http_date(now + after))
        } else {
            builder.header(RETRY_AFTER, after.as_secs())
        };
    }
    let body = Bytes::from_static(body);
    let body = match dribble {
        Some(dribble) => Either::Right(Dribble { rest: body, ..dribble }),
        None => Either::Left(Full::new(body)),
    };
    builder.body(body).expect("status and header come from the model, which makes valid ones")
}

/// A body that comes byte by byte, evenly over a span of time.
#[derive(Debug)]
pub(super) struct Dribble {
    rest: Bytes,
    clock: Clock,
    next: Instant,
    at: Instant,
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl Dribble {
    fn new(clock: Clock, from: Instant, at: Instant) -> Dribble {
        Dribble { rest: Bytes::new(), clock, next: from, at, sleep: Box::pin(tokio::time::sleep(Duration::ZERO)) }
    }
}

impl Body for Dribble {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        ready!(self.sleep.as_mut().poll(context));
        let drop = self.rest.split_to(1);
        // The last byte comes at the end, the others evenly before it.
        let left = u32::try_from(self.rest.len()).unwrap_or(u32::MAX);
        self.next = if left <= 1 { self.at } else { self.next + self.at.since(self.next) / left };
        let until = self.clock.deadline(self.next).unwrap_or_else(|| tokio::time::Instant::now() + Duration::from_secs(3600));
        self.sleep.as_mut().reset(until);
        Poll::Ready(Some(Ok(Frame::data(drop))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
