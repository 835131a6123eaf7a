//! The edges of the request parser: whatever a client sends, nothing panics, no connection is left behind, and others are served.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};

use simq::job::JobId;
use simq::rng::{Seed, Stream};

use super::{serve, wire};

/// Sends bytes, as far as they are taken, and reads what comes: an answer, or all until the end. What breaks off is said to
/// have ended, so that nobody waits for the rest.
fn send(address: SocketAddr, bytes: &[u8], breaks_off: bool) -> String {
    let mut stream = wire::connect(address).unwrap();
    // A server that has heard enough closes; what is left can't be written then.
    let _ = stream.write_all(bytes);
    if breaks_off {
        let _ = stream.shutdown(Shutdown::Write);
    }
    String::from_utf8_lossy(&wire::read(&mut stream).0).into_owned()
}

fn head(lines: &str) -> Vec<u8> {
    format!("POST /email HTTP/1.1\r\nhost: mock\r\n{lines}\r\n").into_bytes()
}

#[test]
fn nothing_that_a_client_sends_harms_the_others() {
    let served = serve("", &[]);
    let status = |bytes: &[u8], breaks_off| send(served.address, bytes, breaks_off).get(9..12).unwrap_or("").to_owned();
    let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "p".repeat(1 << 20));
    for (what, bytes, answers) in [
        ("two hundred headers", head(&many), &["431", "400"][..]),
        ("a header of a mebibyte", head(&long), &["431", "400", ""]),
        ("a path of a mebibyte", path.into_bytes(), &["414", "431", "400", ""]),
        ("no host", b"GET /email HTTP/1.1\r\n\r\n".to_vec(), &["200", "400"]),
        ("HTTP/1.0", b"GET /email HTTP/1.0\r\n\r\n".to_vec(), &["200"]),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &["400", "505", ""]),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &["400", ""]),
        ("bare line ends", b"GET /email HTTP/1.1\nhost: mock\n\n".to_vec(), &["200", "400"]),
        ("a negative length", head("content-length: -1\r\n"), &["400"]),
        ("two lengths", head("content-length: 1\r\ncontent-length: 2\r\n"), &["400"]),
        ("an endless length", head("content-length: 99999999999999999999\r\n"), &["400"]),
        ("a body that is too large", [head("content-length: 70000\r\n"), vec![b'x'; 70_000]].concat(), &["413", ""]),
        ("a body that is cut", [head("content-length: 50\r\n"), b"{}".to_vec()].concat(), &["413", "400", ""]),
        ("chunks that are none", [head("transfer-encoding: chunked\r\n"), b"zz\r\n\r\n".to_vec()].concat(), &["413", "400", ""]),
        ("headers of simq that are none", head("simq-job: -3\r\nsimq-attempt: x\r\ncontent-length: 0\r\n"), &["200"]),
        ("a job that is the last", head("simq-job: 18446744073709551615\r\ncontent-length: 2\r\n\r\n{}"), &["200"]),
        ("a body of noise", [head("content-type: application/json\r\ncontent-length: 4\r\n"), vec![0xff; 4]].concat(), &["422"]),
        ("nothing", Vec::new(), &[""]),
    ] {
        let breaks_off = ["TLS", "a body that is cut", "nothing"].contains(&what);
        let status = status(&bytes, breaks_off);
        assert!(answers.contains(&&*status), "{what}: {status:?}");
        assert_eq!(served.get().status, 200, "others are served after {what}");
    }
    served.until_alone();
    served.stop();
}

#[test]
fn noise_is_survived() {
    let served = serve("", &[]);
    for n in 0..150 {
        let mut draw = Seed(n).draw(Stream::Fault, JobId(n), 1);
        let length = draw.between(1.0, 3_000.0) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| draw.between(0.0, 256.0) as u8).collect();
        if n % 2 == 0 {
            // A good request with bytes of it spoilt reaches further.
            let mut good =
                wire::request("POST", "/email", &[("content-type", "application/json")], "{\"a\": [1, 2]}").into_bytes();
            for _ in 0..=n % 5 {
                let place = draw.between(0.0, good.len() as f64) as usize;
                good[place] = draw.between(0.0, 256.0) as u8;
            }
            bytes = good;
        }
        send(served.address, &bytes, true);
        if n % 3 == 0 {
            send(served.admin, &bytes, true);
        }
    }
    assert_eq!(served.get().status, 200);
    served.until_alone();
    served.stop();
}

#[test]
fn pipelined_requests_are_answered_one_after_another() {
    let served = serve("", &[]);
    let mut stream = wire::connect(served.address).unwrap();
    let requests: String = (1..=5)
        .map(|n| {
            wire::request(
                "POST",
                "/email",
                &[("simq-job", "7"), ("simq-attempt", &n.to_string())],
                if n == 3 { "{" } else { "{}" },
            )
        })
        .collect();
    stream.write_all(requests.as_bytes()).unwrap();
    let statuses: Vec<u16> = (0..5).map(|_| wire::read(&mut stream).1.unwrap().status).collect();
    assert_eq!(statuses, [200, 200, 422, 200, 200]);
}

#[test]
fn half_open_and_slow_clients_leave_nothing_behind() {
    let served = serve("", &["--log", "log.csv"]);
    let half: Vec<_> = (0..100)
        .map(|n| {
            let mut stream = wire::connect(served.address).unwrap();
            let request = wire::request("POST", "/email", &[], "{}");
            stream.write_all(&request.as_bytes()[..n % request.len()]).unwrap();
            stream
        })
        .collect();
    assert_eq!(served.get().status, 200, "others are served beside a hundred who say nothing");
    let mut slow = wire::connect(served.address).unwrap();
    for byte in wire::request("POST", "/email", &[], "{}").bytes() {
        slow.write_all(&[byte]).unwrap();
    }
    assert_eq!(wire::read(&mut slow).1.unwrap().status, 200, "slow is not wrong");
    // Those who hang up in the middle of a hang are counted as gone.
    served.with(&serde_json::json!({ "mode": "hang" }), || {
        let mut waiting = wire::connect(served.address).unwrap();
        waiting.write_all(wire::request("GET", "/report", &[], "").as_bytes()).unwrap();
        let count = |outcome: &str| served.state()["outcomes"][outcome].as_u64();
        crate::processes::until("the request to arrive", || count("timed-out"));
    });
    drop((half, slow));
    served.until_alone();
    assert_eq!(served.state()["callers_gone"], 1);
    let log = served.stop_and_read_log();
    assert!(log.lines().any(|line| line.contains(",/report,false,timed-out,,,left")), "{log}");
}
