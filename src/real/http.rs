//! The caller: a worker's HTTP client.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request as HttpRequest, Response, StatusCode, body::Incoming};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

use crate::call::Outcome;
use crate::worker::Request;

/// Names the job that a request is for.
pub const JOB_HEADER: &str = "simq-job";
/// Names the attempt, from 1.
pub const ATTEMPT_HEADER: &str = "simq-attempt";

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

    /// Sends one attempt's request, and waits for the answer as long as the request says.
    pub async fn call(&self, request: &Request) -> Outcome {
        let exchange = async {
            let response = self.client.request(self.http(request)).await.map_err(|error| self.classify(&error))?;
            let outcome = read_head(&response);
            let body = Limited::new(response.into_body(), LARGEST_ANSWER);
            body.collect().await.map_err(|_| Outcome::Reset)?;
            Ok(outcome)
        };
        match tokio::time::timeout(request.timeout, exchange).await {
            Ok(Ok(outcome) | Err(outcome)) => outcome,
            Err(_) => Outcome::TimedOut,
        }
    }

    /// Calls that failed because this machine had no port or file left for them: the harness's fault, not the downstream's.
    pub fn starved(&self) -> u64 {
        self.starved.load(Ordering::Relaxed)
    }

    fn http(&self, request: &Request) -> HttpRequest<Full<Bytes>> {
        HttpRequest::post(format!("http://{}/{}", self.address, request.kind))
            .header(JOB_HEADER, request.job.0)
            .header(ATTEMPT_HEADER, request.attempt)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::copy_from_slice(request.payload.as_bytes())))
            .expect("a job type is a valid path: the scenario allows letters, digits, - and _")
    }

    fn classify(&self, error: &hyper_util::client::legacy::Error) -> Outcome {
        let mut cause = error.source();
        while let Some(error) = cause {
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
    let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    Outcome::Status { code: response.status().as_u16(), retry_after: seconds.map(Duration::from_secs) }
}
