//! The service that the jobs call, and that fails: what happens to a call is decided when it arrives.
//!
//! A pure model. It is told the time and the call, and answers what will happen and when. It knows no socket, no clock and
//! no global randomness; `real` puts an HTTP door around it, a simulator asks it directly.
//!
//! ```text
//!  call ─► outage? ──refuse──► Refuse
//!    │       ├──────hang─────► Silence
//!    │       ├──unavailable──► 503 at once
//!    │       ├──rate-limit───► 429 at once, if the bucket is empty
//!    │       └──brownout─────► slower, some fail
//!    └─► queue full? ────────► 503 at once
//!        servers (FIFO) ─────► ok · 422 malformed · 500 by the base error rate, when the work is done
//! ```
//! With `k` servers and one first-in-first-out queue the finish time is known on arrival: the earliest free server, then
//! the service time. A caller that gives up changes nothing: its work still occupies the server, as real work does. A call
//! that hangs occupies none: nobody works on it.

mod fault;
mod server;

use std::time::Duration;

use serde::Serialize;

pub use fault::{Mode, Outage};

use crate::call::{Call, Outcome, Reply};
use crate::dist::Dist;
use crate::rng::{Seed, Stream};
use crate::time::Instant;
use fault::{Bucket, Verdict};
use server::Servers;

/// What the downstream is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Calls it works on at once, at least 1.
    pub servers: u32,
    /// Calls that may wait for a server; the next one is answered 503.
    pub queue: u32,
    /// How long a server works on a call.
    pub latency: Dist,
    /// Share of calls that fail with 500 although nothing is wrong, 0 to 1.
    pub error_rate: f64,
    /// How long a caller waits for an answer. The downstream itself does not know it.
    pub client_timeout: Duration,
    /// When it is down, and how; in order of time.
    pub outages: Vec<Outage>,
}

impl Settings {
    /// Calls it can complete in a second when all is well: servers over mean latency.
    pub fn capacity(&self) -> f64 {
        f64::from(self.servers) / self.latency.mean().as_secs_f64().max(1e-9)
    }
}

/// The downstream in the course of a run.
#[derive(Debug)]
pub struct Downstream {
    settings: Settings,
    seed: Seed,
    servers: Servers,
    buckets: Vec<Option<Bucket>>,
}

impl Downstream {
    /// A healthy, idle downstream at the start of a run.
    pub fn new(settings: Settings, seed: Seed) -> Downstream {
        let servers = Servers::new(settings.servers, settings.queue);
        let buckets = settings.outages.iter().map(|outage| outage.bucket()).collect();
        Downstream { settings, seed, servers, buckets }
    }

    /// What becomes of a call that arrives `now`. Arrivals must come in order of time; an earlier `now` counts as the
    /// latest one seen.
    pub fn admit(&mut self, now: Instant, call: &Call) -> Reply {
        let mut slowdown = 1.0;
        let mut error_rate = self.settings.error_rate;
        for (outage, bucket) in self.settings.outages.iter().zip(&mut self.buckets) {
            if !outage.window.contains(now) {
                continue;
            }
            match outage.judge(now, bucket.as_mut()) {
                Verdict::Pass => {}
                Verdict::Reply(reply) => return reply,
                Verdict::Impair { slower, failing } => {
                    slowdown *= slower;
                    error_rate = 1.0 - (1.0 - error_rate) * (1.0 - failing);
                }
            }
        }
        let work = self.settings.latency.sample(&mut self.seed.draw(Stream::Service, call.job, call.attempt));
        let Some(at) = self.servers.admit(now, work.mul_f64(slowdown)) else {
            return Reply::Answer { outcome: Outcome::status(503), at: now };
        };
        Reply::Answer { outcome: self.outcome(call, error_rate), at }
    }

    fn outcome(&self, call: &Call, error_rate: f64) -> Outcome {
        if self.seed.draw(Stream::Fault, call.job, call.attempt).happens(error_rate) {
            Outcome::status(500)
        } else if call.malformed {
            Outcome::status(422)
        } else {
            Outcome::Ok
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::time::Window;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn settings(servers: u32, queue: u32, outages: Vec<Outage>) -> Settings {
        Settings {
            servers,
            queue,
            latency: Dist::Constant { value: Duration::from_millis(10) },
            error_rate: 0.0,
            client_timeout: Duration::from_secs(1),
            outages,
        }
    }

    fn call(job: u64) -> Call {
        Call { job: JobId(job), attempt: 1, malformed: false }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    fn during(from: u64, lasts: u64, mode: Mode) -> Outage {
        Outage { window: Window::starting(Duration::from_millis(from), Duration::from_millis(lasts)), mode }
    }

    #[test]
    fn a_free_server_answers_after_its_work_and_a_busy_one_after_the_queue() {
        let mut downstream = Downstream::new(settings(1, 1, vec![]), Seed(1));
        let ok = |ms| Reply::Answer { outcome: Outcome::Ok, at: at(ms) };
        assert_eq!(downstream.admit(at(0), &call(1)), ok(10));
        assert_eq!(downstream.admit(at(1), &call(2)), ok(20));
        let full = Reply::Answer { outcome: Outcome::status(503), at: at(2) };
        assert_eq!(downstream.admit(at(2), &call(3)), full, "one is served, one waits, the third finds the queue full");
        assert_eq!(downstream.admit(at(30), &call(4)), ok(40));
    }

    #[test]
    fn outages_answer_as_their_mode_says_and_end_on_time() {
        let mut downstream = Downstream::new(
            settings(
                4,
                4,
                vec![
                    during(100, 100, Mode::Unavailable { retry_after: Some(Duration::from_secs(3)) }),
                    during(300, 100, Mode::Refuse),
                    during(500, 100, Mode::Hang),
                ],
            ),
            Seed(1),
        );
        let hinted = Outcome::Status { code: 503, retry_after: Some(Duration::from_secs(3)) };
        assert_eq!(downstream.admit(at(100), &call(1)), Reply::Answer { outcome: hinted, at: at(100) });
        assert_eq!(downstream.admit(at(200), &call(2)), Reply::Answer { outcome: Outcome::Ok, at: at(210) });
        assert_eq!(downstream.admit(at(399), &call(3)), Reply::Refuse);
        assert_eq!(downstream.admit(at(599), &call(4)), Reply::Silence);
        assert_eq!(downstream.admit(at(600), &call(5)), Reply::Answer { outcome: Outcome::Ok, at: at(610) });
    }

    #[test]
    fn a_rate_limit_lets_its_rate_through_and_hints_at_the_rest() {
        let limit = Mode::RateLimit { rate: 10.0, burst: 5, retry_after: Duration::from_secs(1) };
        let mut downstream = Downstream::new(settings(1000, 0, vec![during(0, 10_000, limit)]), Seed(1));
        let replies: Vec<Reply> = (0..1000).map(|i| downstream.admit(at(i * 10), &call(i))).collect();
        let passed = replies.iter().filter(|r| matches!(r, Reply::Answer { outcome: Outcome::Ok, .. })).count();
        assert!((104..=105).contains(&passed), "5 at once and 10 a second for 10 s, not {passed}");
        assert!(
            replies
                .iter()
                .any(|r| matches!(r, Reply::Answer { outcome: Outcome::Status { code: 429, retry_after: Some(_) }, .. }))
        );
    }

    #[test]
    fn a_brownout_is_slower_and_partly_failing() {
        let mode = Mode::Brownout { error_rate: 0.5, slowdown: 3.0 };
        let mut downstream = Downstream::new(settings(1000, 0, vec![during(0, 1_000, mode)]), Seed(1));
        let replies: Vec<Reply> = (0..1000).map(|i| downstream.admit(at(i), &call(i))).collect();
        let failed = replies.iter().filter(|r| matches!(r, Reply::Answer { outcome: Outcome::Status { .. }, .. })).count();
        assert!((430..570).contains(&failed), "{failed} of 1000 failed, half were to");
        assert!(matches!(replies[7], Reply::Answer { at: done, .. } if done == at(37)));
    }

    #[test]
    fn malformed_calls_are_rejected_by_a_healthy_downstream_only() {
        let mut downstream =
            Downstream::new(settings(4, 4, vec![during(100, 100, Mode::Unavailable { retry_after: None })]), Seed(1));
        let bad = Call { malformed: true, ..call(1) };
        assert!(matches!(downstream.admit(at(0), &bad), Reply::Answer { outcome: Outcome::Status { code: 422, .. }, .. }));
        assert!(matches!(downstream.admit(at(150), &bad), Reply::Answer { outcome: Outcome::Status { code: 503, .. }, .. }));
    }

    proptest! {
        #[test]
        fn never_serves_more_than_its_servers_at_once(
            servers in 1..5_u32, queue in 0..5_u32, gaps in proptest::collection::vec(0..15_u64, 1..200),
        ) {
            let mut downstream = Downstream::new(settings(servers, queue, vec![]), Seed(1));
            let mut now = 0;
            let mut busy: Vec<(u64, u64)> = Vec::new();
            for (job, gap) in gaps.iter().enumerate() {
                now += gap;
                if let Reply::Answer { outcome: Outcome::Ok, at } = downstream.admit(at(now), &call(job as u64)) {
                    let until = at.as_nanos() / MS;
                    prop_assert!(until >= now + 10);
                    busy.push((until - 10, until));
                }
            }
            for &(start, _) in &busy {
                let together = busy.iter().filter(|(from, until)| *from <= start && start < *until).count();
                prop_assert!(together <= servers as usize, "{together} at once on {servers} servers");
            }
        }
    }
}
