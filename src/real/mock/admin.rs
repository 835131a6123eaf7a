//! The admin API: a hand on faults and timeline, and a look at the counts. JSON over HTTP, on a port of its own.
//!
//! It takes no request that a web page makes in somebody's browser: those carry an `Origin`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::door::Door;
use super::exposition;
use super::state::{Shared, State};
use crate::scenario;
use crate::time::Instant;

/// The most connections at once, the largest body in bytes, and how long it may take to come.
const CONNECTIONS: usize = 64;
const LARGEST_BODY: usize = 64 * 1024;
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// Every command, and what it does.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("GET", "/state", "timeline, faults and counts"),
    ("POST", "/faults", "starts a fault: an outage's keys as JSON, `at` from now; without `lasts` until it is ended"),
    ("DELETE", "/faults/ID", "ends a fault for good"),
    ("POST", "/timeline/freeze", "stops the timeline where it is"),
    ("POST", "/timeline/resume", "lets it go on"),
    ("POST", "/reset", "timeline, servers, faults and counts back to the beginning"),
    ("GET", "/metrics", "the counts for Prometheus"),
];

type Answer = Response<Full<Bytes>>;

/// Serves the API; for ever idle without a door.
pub(super) async fn serve(shared: Arc<Shared>, door: Option<(Door, TcpListener)>) {
    let Some((_door, listener)) = door else { return std::future::pending().await };
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&shared, request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10))
                .serve_connection(TokioIo::new(stream), service);
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Result<Answer, Infallible> {
    if request.headers().contains_key(ORIGIN) {
        return Ok(wrong(StatusCode::FORBIDDEN, "this API does not serve web pages", None));
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body = Limited::new(request.into_body(), LARGEST_BODY).collect();
    let Ok(Ok(body)) = tokio::time::timeout(BODY_WITHIN, body).await else {
        return Ok(wrong(StatusCode::PAYLOAD_TOO_LARGE, "the body did not come whole, or has more than 64 KiB", None));
    };
    Ok(carry_out(shared, &method, &path, &body.to_bytes()))
}

fn carry_out(shared: &Shared, method: &Method, path: &str, body: &[u8]) -> Answer {
    let now = shared.clock.now();
    let mut state = shared.lock();
    let steers = !matches!(*method, Method::GET);
    let answer = match (method.as_str(), path) {
        ("GET", "/") => return json(StatusCode::OK, &json!({ "commands": commands() })),
        ("GET", "/state") => return json(StatusCode::OK, &state_of(&mut state, now)),
        ("GET", "/metrics") => return text(exposition::metrics(&mut state, now)),
        ("POST", "/faults") => start(&mut state, now, body),
        ("DELETE", path) if path.starts_with("/faults/") => end(&mut state, &path["/faults/".len()..]),
        ("POST", "/timeline/freeze") => {
            state.downstream.freeze(now);
            state.awaits_first = false;
            timeline(&state, now)
        }
        ("POST", "/timeline/resume") => {
            state.downstream.resume(now);
            state.awaits_first = false;
            timeline(&state, now)
        }
        ("POST", "/reset") => {
            state.reset(now);
            json(StatusCode::OK, &state_of(&mut state, now))
        }
        _ => return unknown(method, path),
    };
    state.steered |= steers && answer.status().is_success();
    drop(state);
    shared.changed.notify_one();
    answer
}

fn start(state: &mut State, now: Instant, body: &[u8]) -> Answer {
    let example = "send an outage's keys as JSON, such as {\"mode\": \"unavailable\", \"lasts\": \"10s\"}";
    let table = match serde_json::from_slice::<toml::Table>(body) {
        Ok(table) => table,
        Err(error) => {
            return wrong(
                StatusCode::BAD_REQUEST,
                &format!("the body is not a JSON object of outage keys: {error}"),
                Some(example),
            );
        }
    };
    let place = state.downstream.place(now);
    match scenario::fault(&table.to_string(), place) {
        Ok(outage) => {
            let id = state.downstream.start(outage);
            json(StatusCode::CREATED, &json!({ "id": id, "end": format!("DELETE /faults/{id}") }))
        }
        Err(error) => wrong(StatusCode::BAD_REQUEST, &error.to_string(), Some(example)),
    }
}

fn end(state: &mut State, id: &str) -> Answer {
    let Ok(id) = id.parse::<u32>() else {
        return wrong(StatusCode::BAD_REQUEST, &format!("`{id}` is not a fault's number"), Some("see `faults` of GET /state"));
    };
    if state.downstream.end(id) {
        json(StatusCode::OK, &json!({ "id": id, "ended": true }))
    } else {
        wrong(StatusCode::NOT_FOUND, &format!("there is no fault {id}"), Some("see `faults` of GET /state"))
    }
}

fn timeline(state: &State, now: Instant) -> Answer {
    json(StatusCode::OK, &json!({ "timeline": place_of(state, now) }))
}

fn place_of(state: &State, now: Instant) -> Value {
    json!({
        "at_s": state.downstream.place(now).as_secs_f64(),
        "frozen": state.downstream.is_frozen(),
        "waits_for_first_request": state.awaits_first,
    })
}

fn state_of(state: &mut State, now: Instant) -> Value {
    let outcomes: serde_json::Map<String, Value> =
        state.outcomes.iter().map(|(outcome, count)| (outcome.to_string(), (*count).into())).collect();
    let ms = |quantile: f64| state.lateness.value_at_quantile(quantile) as f64 / 1e3;
    let lateness = json!({ "p50_ms": ms(0.5), "p99_ms": ms(0.99), "max_ms": state.lateness.max() as f64 / 1e3 });
    let mut document = json!({
        "timeline": place_of(state, now),
        "steered_by_hand": state.steered,
        "faults": state.downstream.faults(now),
        "requests": state.arrivals,
        "outcomes": outcomes,
        "callers_gone": state.gone,
        "bad_requests": state.bad_requests,
        "connections": state.connections,
        "connections_turned_away": state.connections_turned_away,
        "lateness": lateness,
        "in_house": state.downstream.in_house(now),
    });
    scenario::humanise(&mut document);
    document
}

fn commands() -> Vec<String> {
    COMMANDS.iter().map(|(method, path, what)| format!("{method} {path}: {what}")).collect()
}

/// A command that does not exist, or not so.
fn unknown(method: &Method, path: &str) -> Answer {
    let shape = if path.starts_with("/faults/") { "/faults/ID" } else { path };
    let others: Vec<&str> = COMMANDS.iter().filter(|(_, known, _)| *known == shape).map(|(method, ..)| *method).collect();
    let (status, message) = if others.is_empty() {
        (StatusCode::NOT_FOUND, format!("there is no command `{method} {path}`"))
    } else {
        (StatusCode::METHOD_NOT_ALLOWED, format!("`{path}` takes {}, not {method}", others.join(" and ")))
    };
    let mut answer = json(status, &json!({ "error": message, "commands": commands() }));
    if let Ok(allow) = others.join(", ").parse()
        && !others.is_empty()
    {
        answer.headers_mut().insert(ALLOW, allow);
    }
    answer
}

fn wrong(status: StatusCode, message: &str, help: Option<&str>) -> Answer {
    json(status, &json!({ "error": message, "help": help }))
}

fn json(status: StatusCode, document: &Value) -> Answer {
    body(status, "application/json", format!("{document:#}\n"))
}

fn text(text: String) -> Answer {
    body(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text)
}

fn body(status: StatusCode, kind: &str, text: String) -> Answer {
    let builder = Response::builder().status(status).header(CONTENT_TYPE, kind);
    builder.body(Full::new(Bytes::from(text))).expect("the status and the header are valid")
}
