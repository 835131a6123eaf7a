//! A plain client: a socket, and as little HTTP as will do.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{faults, serve};
use crate::processes;

/// Far beyond what any answer here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().filter_map(|line| line.split_once(": ")).find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn length(&self) -> Option<usize> {
        self.header("content-length").and_then(|length| length.parse().ok())
    }
}

pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: mock\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + "\r\n" + body
}

/// Reads one answer: as much of it as comes, and how that ended.
pub fn read(stream: &mut impl Read) -> (Vec<u8>, Option<Answer>, io::Result<()>) {
    let mut bytes = Vec::new();
    let mut byte = [0];
    loop {
        if let Some(answer) = whole(&bytes) {
            return (bytes, Some(answer), Ok(()));
        }
        match stream.read(&mut byte) {
            Ok(0) => return (bytes, None, Err(ErrorKind::UnexpectedEof.into())),
            Ok(_) => bytes.push(byte[0]),
            Err(error) => return (bytes, None, Err(error)),
        }
    }
}

fn whole(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let answer = Answer { status, body: bytes[end..].to_vec(), head };
    (answer.body.len() >= answer.length().unwrap_or(0)).then_some(answer)
}

/// One request on a connection of its own; it must be answered.
pub fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = connect(address).unwrap();
    stream.write_all(request(method, path, headers, body).as_bytes()).unwrap();
    let (bytes, answer, end) = read(&mut stream);
    answer.unwrap_or_else(|| panic!("{end:?} after {:?}", String::from_utf8_lossy(&bytes)))
}

/// Sends a request and reads what comes.
fn exchange(address: SocketAddr) -> (Vec<u8>, Option<Answer>, io::Result<()>) {
    let mut stream = connect(address).unwrap();
    stream.write_all(request("GET", "/email", &[], "").as_bytes()).unwrap();
    read(&mut stream)
}

#[test]
fn a_plain_client_sees_each_failure_for_what_it_is() {
    let served = serve("", &[]);
    let mut kept = connect(served.address).unwrap();
    kept.write_all(request("GET", "/email", &[], "").as_bytes()).unwrap();
    assert_eq!(read(&mut kept).1.unwrap().status, 200);
    for fault in faults() {
        let mode = fault["mode"].as_str().unwrap().to_owned();
        served.with(&fault, || match &*mode {
            "refuse" => {
                let refused = || connect(served.address).err().filter(|error| error.kind() == ErrorKind::ConnectionRefused);
                processes::until("nobody to listen", refused);
                assert_eq!(kept.read(&mut [0]).unwrap_or(0), 0, "a kept-alive connection is cut");
            }
            "hang" | "slow-body" => {
                let mut stream = connect(served.address).unwrap();
                stream.write_all(request("GET", "/email", &[], "").as_bytes()).unwrap();
                // What comes at once, if anything does; what does not come can't be waited for.
                let before = served.state()["requests"].as_u64();
                if mode == "slow-body" {
                    let mut head = vec![0; 16];
                    stream.read_exact(&mut head).unwrap();
                    assert_eq!(head, b"HTTP/1.1 200 OK\r");
                } else {
                    processes::until("the request to arrive", || (served.state()["requests"].as_u64() >= before).then_some(()));
                    stream.set_nonblocking(true).unwrap();
                    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
                }
            }
            "rate-limit" => {
                let statuses = [served.get().status, served.get().status];
                assert_eq!(statuses, [200, 429]);
            }
            _ => failure(&mode, exchange(served.address)),
        });
    }
    processes::until("it to listen again", || connect(served.address).ok());
    assert_eq!(served.get().status, 200, "and all is well again");
    let outcomes = served.state()["outcomes"].clone();
    for outcome in
        ["ok", "status-503", "status-500", "status-429", "status-401", "reset", "truncated", "garbage", "wrong-body", "timed-out"]
    {
        assert!(outcomes[outcome].as_u64() > Some(0), "{outcome}: {outcomes}");
    }
    drop(kept);
    served.until_alone();
    served.stop();
}

/// What a failure that ends at once must look like.
fn failure(mode: &str, (bytes, answer, end): (Vec<u8>, Option<Answer>, io::Result<()>)) {
    let kind = end.as_ref().err().map(io::Error::kind);
    let status = answer.as_ref().map(|answer| answer.status);
    match mode {
        "reset" => assert_eq!((bytes.len(), kind), (0, Some(ErrorKind::ConnectionReset))),
        "truncated" => {
            assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n") && bytes.ends_with(b"{\"ok\":"));
            assert_eq!(kind, Some(ErrorKind::UnexpectedEof));
        }
        "garbage" => assert!(!bytes.is_empty() && !bytes.starts_with(b"HTTP/") && kind == Some(ErrorKind::UnexpectedEof)),
        "maintenance" => {
            let answer = answer.unwrap();
            assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/html; charset=utf-8")));
        }
        "unavailable" => assert_eq!((status, answer.unwrap().header("retry-after")), (Some(503), Some("7"))),
        "brownout" => assert_eq!(status, Some(500)),
        "permanent" => assert_eq!(status, Some(401)),
        other => panic!("{other} is not looked at"),
    }
}

#[test]
fn retry_after_counts_down_or_is_a_date() {
    let served = serve("", &[]);
    let limit = serde_json::json!({ "mode": "rate-limit", "rate": "1/h", "limiter": "sliding-window", "per": "1h", "retry_after": "reset" });
    served.with(&limit, || {
        assert_eq!(served.get().status, 200);
        let answer = served.get();
        let after: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!(answer.status == 429 && (3000..=3600).contains(&after), "{answer:?}");
    });
    let dated = serde_json::json!({ "mode": "unavailable", "retry_after": "90s", "retry_after_as": "date" });
    served.with(&dated, || {
        let answer = served.get();
        let date = |name: &str| httpdate::parse_http_date(answer.header(name).unwrap()).unwrap();
        assert_eq!(date("retry-after").duration_since(date("date")).unwrap(), Duration::from_secs(90));
    });
    let none = serde_json::json!({ "mode": "rate-limit", "rate": "1/h", "retry_after": "none" });
    served.with(&none, || {
        let answers = [served.get(), served.get()];
        assert_eq!(answers.map(|answer| answer.header("retry-after").is_some()), [false, false]);
    });
}

#[test]
fn types_callers_and_marked_jobs_are_told_apart() {
    let served = serve("", &[]);
    let status = |path: &str, headers: &[(&str, &str)]| ask(served.address, "POST", path, headers, "{}").status;
    served.with(&serde_json::json!({ "mode": "unavailable", "type": "report" }), || {
        assert_eq!((status("/report", &[]), status("/report/3?x=1", &[]), status("/email", &[])), (503, 503, 200));
    });
    served.with(&serde_json::json!({ "mode": "rate-limit", "rate": "1/h", "scope": "caller" }), || {
        let of = |name| status("/email", &[("simq-caller", name)]);
        assert_eq!([of("a"), of("a"), of("b"), of("b")], [200, 429, 200, 429]);
    });
    served.with(&serde_json::json!({ "mode": "permanent", "code": 400, "probability": 0.5 }), || {
        let job =
            |job: u32, attempt: u32| status("/email", &[("simq-job", &job.to_string()), ("simq-attempt", &attempt.to_string())]);
        let marked: Vec<u16> = (1..=20).map(|n| job(n, 1)).collect();
        assert!(marked.contains(&400) && marked.contains(&200), "{marked:?}");
        assert_eq!(marked, (1..=20).map(|n| job(n, 2)).collect::<Vec<_>>(), "the same at every attempt");
    });
}
