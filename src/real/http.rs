//! The caller: a worker's HTTP client.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{Request as HttpRequest, Response, StatusCode, body::Incoming};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

use crate::call::Outcome;
use crate::job::JobId;
use crate::worker::Request;

/// Names the job that a request is for.
pub const JOB_HEADER: &str = "simq-job";
/// Names the attempt, from 1.
pub const ATTEMPT_HEADER: &str = "simq-attempt";
/// Names who calls, for limits per caller.
pub const CALLER_HEADER: &str = "simq-caller";

/// What a healthy service says. A 200 with anything else is a failure: a maintenance page must not complete a job.
pub(super) const HEALTHY: &[u8] = b"{\"ok\":true}";

/// The largest answer that is read, in bytes.
const LARGEST_ANSWER: usize = 64 * 1024;

/// Sends requests to the downstream over kept-alive connections.
#[derive(Debug)]
pub struct Caller {
    client: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    starved: AtomicU64,
}

impl Caller {
    /// A caller of the service at `address`.
    pub fn new(address: SocketAddr) -> Caller {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(usize::MAX)
            .pool_idle_timeout(None::<Duration>)
            .build(connector);
        Caller { client, address, starved: AtomicU64::new(0) }
    }

    /// Whom it calls.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends one attempt's request of `worker`, and waits for the answer as long as the request says.
    pub async fn call(&self, worker: u32, request: &Request) -> Outcome {
        let (kind, payload) = (&*request.kind, Bytes::copy_from_slice(request.payload.as_bytes()));
        self.send(self.http(kind, request.job, request.attempt, &worker.to_string(), payload), request.timeout).await
    }

    /// Sends an ordinary user's request, which bears the number of a job and is made once.
    pub(super) async fn visit(&self, kind: &str, number: JobId, timeout: Duration) -> Outcome {
        self.send(self.http(kind, number, 1, "users", Bytes::from_static(b"{}")), timeout).await
    }

    async fn send(&self, request: HttpRequest<Full<Bytes>>, timeout: Duration) -> Outcome {
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| self.classify(&error))?;
            let outcome = read_head(&response);
            let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect().await;
            let body = body.map_err(|error| classify_body(&*error))?.to_bytes();
            if outcome == Outcome::Ok && !is_healthy(&body) {
                return Err(Outcome::WrongBody);
            }
            Ok(outcome)
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(outcome) | Err(outcome)) => outcome,
            Err(_) => Outcome::TimedOut,
        }
    }

    /// Calls that failed because this machine had no port or file left for them: the harness's fault, not the downstream's.
    pub fn starved(&self) -> u64 {
        self.starved.load(Ordering::Relaxed)
    }

    fn http(&self, kind: &str, job: JobId, attempt: u32, caller: &str, body: Bytes) -> HttpRequest<Full<Bytes>> {
        HttpRequest::post(format!("http://{}/{kind}", self.address))
            .header(JOB_HEADER, job.0)
            .header(ATTEMPT_HEADER, attempt)
            .header(CALLER_HEADER, caller)
            .header("content-type", "application/json")
            .body(Full::new(body))
            .expect("a job type is a valid path: the scenario allows letters, digits, - and _")
    }

    fn classify(&self, error: &hyper_util::client::legacy::Error) -> Outcome {
        let mut cause = error.source();
        while let Some(error) = cause {
            if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
                return Outcome::Garbage;
            }
            if let Some(io) = error.downcast_ref::<io::Error>() {
                match io.kind() {
                    io::ErrorKind::ConnectionRefused => return Outcome::Refused,
                    io::ErrorKind::AddrNotAvailable => self.starve(),
                    _ if io.raw_os_error().is_some_and(|code| code == EMFILE || code == ENFILE) => self.starve(),
                    _ => {}
                }
            }
            cause = error.source();
        }
        Outcome::Reset
    }

    fn starve(&self) {
        self.starved.fetch_add(1, Ordering::Relaxed);
    }
}

/// "Too many open files", of the process and of the system; the same on Linux and macOS.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

fn read_head(response: &Response<Incoming>) -> Outcome {
    if response.status() == StatusCode::OK {
        return Outcome::Ok;
    }
    Outcome::Status { code: response.status().as_u16(), retry_after: retry_after(response) }
}

/// The Retry-After: seconds, or a date, which counts from the answer's own date (RFC 9110 §10.2.3).
fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(after).ok()?;
    let date = text("date").and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or_else(SystemTime::now);
    Some(then.duration_since(date).unwrap_or_default())
}

/// Whether a body says what a healthy service says, however it is spaced.
fn is_healthy(body: &[u8]) -> bool {
    body == HEALTHY || serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|body| body["ok"] == true)
}

/// Why a body did not come whole.
fn classify_body(error: &(dyn std::error::Error + 'static)) -> Outcome {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return Outcome::WrongBody;
        }
        let reset = error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::ConnectionReset);
        if reset {
            return Outcome::Reset;
        }
        cause = error.source();
    }
    Outcome::Truncated
}
