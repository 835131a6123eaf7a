//! Scenarios of any size.

use std::io;
use std::time::Duration;

use simq::dist::Dist;
use simq::downstream::Settings;
use simq::profile::Profile;
use simq::scenario::{self, Scenario};

/// `scenarios/outage.toml` with so many jobs, and as many more workers, servers and places in the queue; full jitter alone.
pub fn outage(jobs: u64) -> Scenario {
    let scale = jobs as f64 / 1550.0;
    let times = |n: f64| (n * scale).ceil().max(1.0) as u64;
    let steady = jobs * 750 / 1550;
    // Of workers and connections a scenario may have so many; slots make up for it.
    let workers = times(8.0).min(400);
    let slots = (times(8.0) * 32).div_ceil(workers);
    let text = format!(
        "name = 'outage'\nseed = 7\nhorizon = '120s'\n\
         [[jobs]]\ntype = 'email'\ncount = {steady}\narrival = 'constant'\nrate = '{}/s'\nmax_retries = 10\n\
         [[jobs]]\ntype = 'newsletter'\ncount = {}\nat = '2s'\nmax_retries = 10\n\
         [workers]\ncount = {workers}\nslots = {slots}\nconnections = {workers}\n\
         [downstream]\nservers = {}\nqueue = {}\nclient_timeout = '2s'\n\
         latency = {{ kind = 'log-normal', median = '30ms', p99 = '120ms' }}\n\
         [[downstream.outage]]\nat = '1s'\nlasts = '6s'\nmode = 'unavailable'\n\
         [policy.jitter]\nkind = 'exponential'\nbase = '1s'\nfactor = 2\ncap = '4s'\njitter = 'full'\n",
        times(50.0),
        jobs - steady,
        times(16.0),
        times(160.0),
    );
    parse(&text)
}

/// The built-in machine with as many more processors as there are more jobs.
pub fn machine(jobs: u64) -> Profile {
    Profile { processors: (2 * jobs / 1550).max(2) as u32, ..Profile::built_in() }
}

/// So many jobs at once that all fail in the first second and come back within a minute, each once.
pub fn wave(jobs: u64) -> Scenario {
    parse(&format!(
        "name = 'wave'\nseed = 7\nhorizon = '10m'\n\
         [[jobs]]\ntype = 'email'\ncount = {jobs}\nmax_retries = 10\n\
         [workers]\ncount = 64\nslots = 1000\nconnections = 64\n\
         [downstream]\nservers = 100000\nqueue = 100000\n\
         latency = {{ kind = 'constant', value = '1ms' }}\n\
         [[downstream.outage]]\nat = '0s'\nlasts = '1s'\nmode = 'unavailable'\n\
         [policy.jitter]\nkind = 'constant'\ndelay = '1m'\njitter = 'full'\n"
    ))
}

/// Poisson arrivals for [`four_servers`].
pub fn queue(jobs: u64, rate: f64) -> Scenario {
    let scenario = parse(&format!(
        "name = 'queue'\nseed = 7\nhorizon = '30d'\n\
         [[jobs]]\ntype = 'email'\ncount = {jobs}\narrival = 'poisson'\nrate = '{rate}/s'\n\
         [workers]\ncount = 1\nslots = 1000\n\
         [downstream]\nservers = 4\nlatency = {{ kind = 'constant', value = '1ms' }}\n\
         [policy.none]\nkind = 'none'\n"
    ));
    Scenario { downstream: four_servers(), ..scenario }
}

/// Four servers with exponential service times of a second, and room for whoever waits.
pub fn four_servers() -> Settings {
    let second = Duration::from_secs(1);
    let latency = Dist::Exponential { mean: second };
    Settings { servers: 4, queue: 1_000_000, latency, client_timeout: 100_000 * second, ..Settings::default() }
}

fn parse(text: &str) -> Scenario {
    scenario::parse(text, &|_| Err(io::ErrorKind::NotFound.into())).expect("it is a valid scenario")
}
