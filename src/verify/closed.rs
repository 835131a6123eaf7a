//! A closed loop: clients that send their next call only when they have the answer to the last. Jobs in a queue do not wait for each other
//! like this, so there is no scenario for it: it is put together from calendar, downstream and draws.

use super::check::{Check, Effort};
use super::formulas::closed_response;
use super::play::{EXPONENTIAL, servers, settled};
use crate::call::{Call, Reply};
use crate::dist::Dist;
use crate::downstream::Downstream;
use crate::job::JobId;
use crate::rng::Stream;
use crate::sim::Calendar;
use crate::time::{Instant, seconds};

pub(super) fn checks(effort: &Effort) -> Vec<Check> {
    [(10, 11.45), (20, 10.0), (10, 5.0)].into_iter().flat_map(|(clients, think)| one(effort, clients, think)).collect()
}

fn one(effort: &Effort, clients: u32, think: f64) -> [Check; 2] {
    let mut downstream = Downstream::new(servers(1, clients, EXPONENTIAL), effort.seed);
    let thinks = Dist::Exponential { mean: seconds(think) };
    let mut calendar: Calendar<()> = Calendar::default();
    let mut sent = 0;
    let think = |number: u64| thinks.sample(&mut effort.seed.draw(Stream::Users, JobId(number), 1));
    for _ in 0..clients {
        calendar.plan(Instant::START + think(sent), ());
        sent += 1;
    }
    let (mut responses, mut gaps, mut last) = (Vec::new(), Vec::new(), Instant::START);
    while responses.len() < effort.jobs as usize {
        let Some((now, ())) = calendar.take() else { break };
        let call = Call { malformed: false, ..Call::new(JobId(responses.len() as u64), 1, "{}") };
        let Reply::Answer { at, .. } = downstream.admit(now, &call) else { break };
        responses.push(at.since(now).as_secs_f64());
        gaps.push(now.since(last).as_secs_f64());
        last = now;
        calendar.plan(at + think(sent), ());
        sent += 1;
    }
    let (response, z) = (closed_response(clients, thinks.mean().as_secs_f64()), thinks.mean().as_secs_f64());
    let name = |what: &str| format!("{clients} clients, thinking for {z}: {what}");
    [
        Check::of_series(name("mean response"), response, settled(&responses)),
        Check::of_series(name("time between calls"), (z + response) / f64::from(clients), settled(&gaps)),
    ]
}
