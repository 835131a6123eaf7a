//! The server against the model: one trace of arrivals through both.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use simq::call::{Call, Label, Outcome};
use simq::downstream::Downstream;
use simq::job::JobId;
use simq::scenario;
use simq::time::Instant;

use super::{HEALTHY, serve, wire};

/// A service with a bit of everything, under which nothing lasts long.
const WEATHER: &str = "
error_rate = 0.1
queue = 10
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'brownout'
slowdown = 20
error_rate = 0.1
servers = 4
probability = 0.5
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'unavailable'
retry_after = '2s'
probability = 0.1
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'rate-limit'
rate = '400/s'
burst = 20
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'maintenance'
type = 'report'
probability = 0.5
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'truncated'
probability = 0.05
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'reset'
probability = 0.05
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'slow-body'
takes = '20ms'
probability = 0.1
[[downstream.outage]]
at = '0s'
lasts = '1h'
mode = 'permanent'
probability = 0.1
code = 400
";

const CLIENTS: u64 = 12;
const EACH: u64 = 30;

/// What a client saw, in the words of the log.
fn seen(address: std::net::SocketAddr, path: &str, job: &str, attempt: &str) -> String {
    let mut stream = wire::connect(address).unwrap();
    let request = wire::request("POST", path, &[("simq-job", job), ("simq-attempt", attempt), ("simq-caller", "test")], "{}");
    stream.write_all(request.as_bytes()).unwrap();
    match wire::read(&mut stream) {
        (_, Some(answer), _) if answer.status != 200 => Outcome::status(answer.status).to_string(),
        (_, Some(answer), _) if answer.body == b"{\"ok\":true}" => "ok".to_owned(),
        (_, Some(_), _) => "wrong-body".to_owned(),
        (bytes, None, _) if bytes.is_empty() => "reset".to_owned(),
        _ => "truncated".to_owned(),
    }
}

fn instant(seconds: &str) -> Instant {
    let (whole, nanos) = seconds.split_once('.').unwrap();
    Instant::from_nanos(whole.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap())
}

#[test]
fn the_server_does_what_the_model_says_and_says_how_late() {
    let served = serve(WEATHER, &["--log", "log.csv"]);
    let address = served.address;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            std::thread::spawn(move || {
                let call = |n: u64| {
                    let (job, attempt) = ((client * EACH + n) / 2, n % 2 + 1);
                    let path = if job % 3 == 0 { "/report" } else { "/email" };
                    ((job, attempt), seen(address, path, &job.to_string(), &attempt.to_string()))
                };
                (0..EACH).map(call).collect::<Vec<_>>()
            })
        })
        .collect();
    let seen: BTreeMap<(u64, u64), String> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    served.until_alone();
    let measured = served.state()["lateness"]["max_ms"].as_f64().unwrap();
    let log = served.stop_and_read_log();

    let scenario = scenario::parse(&format!("{HEALTHY}{WEATHER}"), &|_| Ok(String::new())).unwrap();
    let mut model = Downstream::new(scenario.downstream, scenario.seed);
    let mut rows: Vec<BTreeMap<String, String>> =
        csv::Reader::from_reader(log.as_bytes()).deserialize().map(Result::unwrap).collect();
    assert_eq!(rows.len() as u64, CLIENTS * EACH);
    rows.sort_by_key(|row| instant(&row["arrived_s"]));
    let mut latest = Duration::ZERO;
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for row in &rows {
        let key = (row["job"].parse().unwrap(), row["attempt"].parse().unwrap());
        let (route, caller) = (Label::of(row["path"].trim_matches('/')), Label::of("test"));
        let call = Call { route, caller, ..Call::new(JobId(key.0), key.1 as u32, "{}") };
        let arrived = instant(&row["arrived_s"]);
        let reply = model.admit(arrived, &call);
        let (outcome, _) = reply.seen(arrived, Duration::MAX);
        let plain = match outcome {
            Outcome::Status { code, .. } => Outcome::status(code),
            other => other,
        };
        assert_eq!(row["outcome"], plain.to_string(), "the server says what the model says: {row:?}");
        assert_eq!(seen[&key], plain.to_string(), "and its caller sees it: {row:?}");
        let due = match reply {
            simq::call::Reply::Answer { at, .. } | simq::call::Reply::Slowly { from: at, .. } => at,
            other => panic!("{other:?}"),
        };
        assert_eq!(instant(&row["due_s"]), due);
        let answered = instant(&row["answered_s"]);
        assert!(answered >= due, "never early");
        latest = latest.max(answered.since(due.max(arrived)));
        *kinds.entry(plain.to_string()).or_default() += 1;
    }
    assert!(kinds.len() >= 7, "only {kinds:?}");
    let latest = latest.as_secs_f64() * 1e3;
    assert!(latest <= measured * 1.002 + 0.002, "{latest} ms late, and simq measured {measured} ms at most");
    println!("{} calls, {kinds:?}, at most {latest:.1} ms late", rows.len());
}

#[test]
fn a_plain_request_draws_its_luck_by_the_number_of_its_arrival() {
    let more = "error_rate = 0.5\n";
    let statuses = || {
        let served = serve(more, &[]);
        (0..20).map(|_| served.get().status).collect::<Vec<u16>>()
    };
    let first = statuses();
    assert!(first.contains(&200) && first.contains(&500), "{first:?}");
    assert_eq!(first, statuses(), "the same seed, the same weather");
}
