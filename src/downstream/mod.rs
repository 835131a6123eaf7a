//! The service that the jobs call, and that fails: what happens to a call is decided when it arrives.
//!
//! A pure model. It is told the time and the call, and answers what will happen and when. It knows no socket, no clock and
//! no global randomness; `real` puts an HTTP door around it, a simulator asks it directly.
//!
//! ```text
//!  call ─► socket    refuse ─► Refuse · hang ─► Silence · reset
//!       ─► gateway   rate-limit ─► 429 · unavailable ─► 503 · maintenance ─► 200, wrong body · permanent ─► 4xx
//!       ─► house     fallen over, queue full, would wait too long ─► 503 at once
//!       ─► servers   ok · 422 malformed · 500 by the error rates, when the work is done; slower in a brownout, a slow
//!                    start or a crowd
//!       ─► way back  slow-body ─► Slowly · truncated · garbage
//! ```
//! With `k` servers and one first-in-first-out queue the finish time is known on arrival: the earliest free server, then
//! the service time. The weather is that of the start (of the arrival, where the newest is
//! served first), the crowd that of the arrival, so a collapse needs no event either. Only a last-in-first-out queue
//! does: there a call [waits](Reply::Waits), and [`Downstream::release`] says what became of it. A caller that gives up changes
//! nothing: its work still occupies the server, as real work does. A call that hangs occupies none: nobody works on it.
//!
//! Draws are keyed by seed, job and attempt, so that the same call meets the same luck in every world and under every policy.

mod collapse;
mod fault;
mod hand;
mod server;
mod settings;
mod stack;
mod timeline;

use std::time::Duration;

pub use collapse::Collapse;
pub use fault::{Hint, LimiterKind, Mode, Outage, RateLimit};
pub use hand::FaultState;
pub use settings::{Discipline, Settings, Users};

use crate::call::{Admission, Call, Outcome, Reply, Ticket};
use crate::rng::{Seed, Stream};
use crate::time::{Instant, Window};
use collapse::Strain;
use fault::{Broken, Effects, Fault};
use server::Servers;
use stack::{Place, Stack};
use timeline::Timeline;

/// The downstream in the course of a run.
#[derive(Debug)]
pub struct Downstream {
    settings: Settings,
    seed: Seed,
    house: House,
    strain: Strain,
    faults: Vec<Fault>,
    timeline: Timeline,
    latest: Instant,
    numbered: u32,
}

/// The servers and their queue.
#[derive(Debug)]
enum House {
    Fifo(Servers),
    Lifo(Stack<Finish>),
}

/// What becomes of a call when its work is done.
#[derive(Clone, Copy, Debug)]
struct Finish {
    outcome: Outcome,
    dribble: Duration,
}

impl Downstream {
    /// A healthy, idle downstream at the start of a run.
    pub fn new(settings: Settings, seed: Seed) -> Downstream {
        let faults = (1..).zip(&settings.outages).map(|(id, outage)| Fault::new(outage.clone(), id, seed)).collect();
        let mut downstream = Downstream {
            house: House::new(&settings),
            numbered: settings.outages.len() as u32,
            settings,
            seed,
            strain: Strain::default(),
            faults,
            timeline: Timeline::Behind(Duration::ZERO),
            latest: Instant::START,
        };
        downstream.sort();
        downstream
    }

    /// What becomes of a call that arrives `now`. Arrivals must come in order of time; an earlier `now` counts as the
    /// latest one seen.
    pub fn admit(&mut self, now: Instant, call: &Call) -> Reply {
        self.take(now, call).reply
    }

    /// The same with all that is known about it.
    pub fn take(&mut self, now: Instant, call: &Call) -> Admission {
        let now = self.now(now);
        let place = self.timeline.place(now);
        let mut effects = Effects {
            spared: 1.0 - self.settings.error_rate,
            servers: self.settings.servers,
            dribble: Duration::ZERO,
            broken: None,
        };
        for fault in &mut self.faults {
            if let Some((reply, dated)) = fault.meet(now, place, call, &mut effects) {
                return Admission { dated, ..Admission::idle(reply) };
            }
        }
        self.serve(now, call, &effects)
    }

    /// Calls that waited and do no longer, with what became of them, in that order. Nothing but a last-in-first-out queue has
    /// any.
    pub fn release(&mut self, now: Instant) -> Vec<(Ticket, Admission)> {
        let now = self.now(now);
        let House::Lifo(stack) = &mut self.house else { return Vec::new() };
        let mut released = Vec::new();
        for call in stack.release(now) {
            let admission = match call.place {
                Ok(work) => call.what.after(work),
                Err(_) => {
                    self.strain.turn_away(call.at);
                    turned_away(call.at)
                }
            };
            released.push((call.ticket, admission));
        }
        released
    }

    /// When [`Downstream::release`] may next have something to say.
    pub fn wake_at(&self) -> Option<Instant> {
        match &self.house {
            House::Fifo(_) => None,
            House::Lifo(stack) => stack.wake_at(),
        }
    }

    fn now(&mut self, now: Instant) -> Instant {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn serve(&mut self, now: Instant, call: &Call, effects: &Effects) -> Admission {
        let mut crowd = 1.0;
        if let Some(collapse) = &self.settings.collapse {
            let in_house = self.house.calls(now);
            if self.strain.is_down(now, in_house, collapse) {
                self.strain.turn_away(now);
                return turned_away(now);
            }
            crowd = self.strain.slower(now, in_house, self.settings.servers, collapse);
        }
        let work = self.settings.latency.sample(&mut self.seed.draw(Stream::Service, call.job, call.attempt));
        let (faults, timeline) = (&self.faults, &self.timeline);
        // The weather is that of the start, which first-in-first-out knows already.
        let work = |start: Instant| {
            let slower: f64 = faults.iter().map(|fault| fault.slower(timeline.place(start), call)).product();
            let factor = crowd * slower;
            if factor == 1.0 { work } else { crate::time::seconds(work.as_secs_f64() * factor) }
        };
        let finish = Finish { outcome: self.outcome(call, effects), dribble: effects.dribble };
        let admission = match &mut self.house {
            House::Fifo(servers) => {
                servers.admit(now, work, effects.servers, self.settings.shed_after).ok().map(|work| finish.after(work))
            }
            House::Lifo(stack) => match stack.admit(now, work(now), effects.servers, finish) {
                Place::Served(work) => Some(finish.after(work)),
                Place::Waits(ticket) => Some(Admission::idle(Reply::Waits(ticket))),
                Place::Full => None,
            },
        };
        admission.unwrap_or_else(|| {
            self.strain.turn_away(now);
            turned_away(now)
        })
    }

    fn outcome(&self, call: &Call, effects: &Effects) -> Outcome {
        match effects.broken {
            Some(Broken::Truncated) => return Outcome::Truncated,
            Some(Broken::Garbage) => return Outcome::Garbage,
            None => {}
        }
        if self.seed.draw(Stream::Fault, call.job, call.attempt).happens(1.0 - effects.spared) {
            Outcome::status(500)
        } else if call.malformed {
            Outcome::status(422)
        } else {
            Outcome::Ok
        }
    }
}

impl House {
    fn new(settings: &Settings) -> House {
        match settings.discipline {
            Discipline::Fifo => House::Fifo(Servers::new(settings.servers, settings.queue)),
            Discipline::Lifo => House::Lifo(Stack::new(settings.servers, settings.queue, settings.shed_after)),
        }
    }

    fn calls(&mut self, now: Instant) -> usize {
        match self {
            House::Fifo(servers) => servers.in_house(now),
            House::Lifo(stack) => stack.in_house(),
        }
    }
}

impl Finish {
    fn after(self, work: Window) -> Admission {
        let (outcome, from) = (self.outcome, work.until);
        let reply = if self.dribble.is_zero() || matches!(outcome, Outcome::Garbage | Outcome::Truncated) {
            Reply::Answer { outcome, at: from + self.dribble }
        } else {
            Reply::Slowly { outcome, from, at: from + self.dribble }
        };
        Admission { work: Some(work), ..Admission::idle(reply) }
    }
}

fn turned_away(at: Instant) -> Admission {
    Admission::idle(Reply::Answer { outcome: Outcome::status(503), at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Dist;
    use crate::job::JobId;
    use crate::time::Window;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn settings(servers: u32, queue: u32, outages: Vec<Outage>) -> Settings {
        let latency = Dist::Constant { value: Duration::from_millis(10) };
        Settings { servers, queue, latency, outages, ..Settings::default() }
    }

    fn call(job: u64) -> Call {
        Call::new(JobId(job), 1, "{}")
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    fn during(from: u64, lasts: u64, mode: Mode) -> Outage {
        Outage::plain(Window::starting(Duration::from_millis(from), Duration::from_millis(lasts)), mode)
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
                    during(100, 100, Mode::Unavailable { retry_after: Some(Duration::from_secs(3)), dated: false }),
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
        let limit = Mode::RateLimit(RateLimit::bucket(10.0, 5, Duration::from_secs(1)));
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
        let mode = Mode::Brownout { error_rate: 0.5, slowdown: 3.0, servers: None };
        let mut downstream = Downstream::new(settings(1000, 0, vec![during(0, 1_000, mode)]), Seed(1));
        let replies: Vec<Reply> = (0..1000).map(|i| downstream.admit(at(i), &call(i))).collect();
        let failed = replies.iter().filter(|r| matches!(r, Reply::Answer { outcome: Outcome::Status { .. }, .. })).count();
        assert!((430..570).contains(&failed), "{failed} of 1000 failed, half were to");
        assert!(matches!(replies[7], Reply::Answer { at: done, .. } if done == at(37)));
    }

    #[test]
    fn malformed_calls_are_rejected_by_a_healthy_downstream_only() {
        let mut downstream = Downstream::new(
            settings(4, 4, vec![during(100, 100, Mode::Unavailable { retry_after: None, dated: false })]),
            Seed(1),
        );
        let bad = Call { malformed: true, ..call(1) };
        assert!(matches!(downstream.admit(at(0), &bad), Reply::Answer { outcome: Outcome::Status { code: 422, .. }, .. }));
        assert!(matches!(downstream.admit(at(150), &bad), Reply::Answer { outcome: Outcome::Status { code: 503, .. }, .. }));
    }

    fn outcomes(downstream: &mut Downstream, ms: std::ops::Range<u64>) -> Vec<Outcome> {
        let see = |i| downstream.admit(at(i), &call(i)).seen(at(i), Duration::from_secs(60)).0;
        ms.map(see).collect()
    }

    #[test]
    fn faults_act_in_the_order_of_the_way_whatever_the_file_says() {
        let faults = [
            (Mode::Garbage, 900, Outcome::Garbage),
            (Mode::Truncated, 800, Outcome::Truncated),
            (Mode::Permanent { code: 401 }, 700, Outcome::status(401)),
            (Mode::Maintenance, 600, Outcome::WrongBody),
            (Mode::Unavailable { retry_after: None, dated: false }, 500, Outcome::status(503)),
            (Mode::Reset, 400, Outcome::Reset),
            (Mode::Hang, 300, Outcome::TimedOut),
            (Mode::Refuse, 200, Outcome::Refused),
        ];
        let outages = faults.iter().map(|(mode, lasts, _)| during(0, *lasts, *mode)).collect();
        let mut downstream = Downstream::new(settings(1000, 0, outages), Seed(1));
        for (_, until, outcome) in faults.iter().rev() {
            assert_eq!(outcomes(&mut downstream, until - 2..until - 1), [*outcome]);
        }
        assert_eq!(outcomes(&mut downstream, 900..901), [Outcome::Ok]);
    }

    #[test]
    fn probability_ramps_and_routes_choose_whom_a_fault_strikes() {
        let of = |outage: Outage| {
            let mut downstream = Downstream::new(settings(10_000, 0, vec![outage]), Seed(1));
            outcomes(&mut downstream, 0..1000).iter().filter(|outcome| **outcome == Outcome::Reset).count()
        };
        let half = of(Outage { probability: 0.5, ..during(0, 1000, Mode::Reset) });
        assert!((430..570).contains(&half), "{half} of 1000 were to be a half");
        let ramp = of(Outage { ramp_in: Duration::from_secs(1), ..during(0, 1000, Mode::Reset) });
        assert!((430..570).contains(&ramp), "{ramp} of 1000 were to be a half");
        assert_eq!(of(Outage { route: Some("email".into()), ..during(0, 1000, Mode::Reset) }), 0);
        let permanent = Outage { probability: 0.2, ..during(0, 10_000, Mode::Permanent { code: 400 }) };
        let mut downstream = Downstream::new(settings(1000, 0, vec![permanent]), Seed(1));
        let mut failing = |ms: u64, attempt| -> Vec<u64> {
            let failing = |job: &u64| {
                let call = Call { attempt, ..call(*job) };
                matches!(downstream.admit(at(ms), &call), Reply::Answer { outcome: Outcome::Status { code: 400, .. }, .. })
            };
            (0..500).filter(failing).collect()
        };
        let first = failing(0, 1);
        assert!((70..130).contains(&first.len()), "{} of 500 jobs were to be a fifth", first.len());
        assert_eq!(first, failing(1000, 2), "the same jobs at every attempt");
    }

    #[test]
    fn a_slow_start_warms_up_and_a_slow_body_dribbles() {
        let outages = vec![
            during(0, 100, Mode::SlowStart { from: 0.1 }),
            during(1000, 100, Mode::SlowBody { takes: Duration::from_millis(50) }),
        ];
        let mut downstream = Downstream::new(settings(10, 0, outages), Seed(1));
        let mut took = |ms| match downstream.admit(at(ms), &call(ms)) {
            Reply::Answer { at: done, .. } => done.since(at(ms)).as_millis(),
            other => panic!("{other:?}"),
        };
        assert_eq!([took(0), took(50), took(100)], [100, 18, 10]);
        let slow = Reply::Slowly { outcome: Outcome::Ok, from: at(1010), at: at(1060) };
        assert_eq!(downstream.admit(at(1000), &call(1)), slow);
    }

    #[test]
    fn a_last_in_first_out_queue_says_later_what_became_of_a_call() {
        let lifo = Settings { discipline: Discipline::Lifo, ..settings(1, 5, vec![]) };
        let mut downstream = Downstream::new(lifo, Seed(1));
        let replies: Vec<Reply> = (0..3).map(|i| downstream.admit(at(i), &call(i))).collect();
        assert_eq!(replies[0], Reply::Answer { outcome: Outcome::Ok, at: at(10) });
        assert_eq!(replies[1..], [Reply::Waits(Ticket(1)), Reply::Waits(Ticket(2))]);
        assert_eq!(downstream.wake_at(), Some(at(10)));
        let released: Vec<(Ticket, Reply)> = downstream.release(at(20)).into_iter().map(|(t, a)| (t, a.reply)).collect();
        let ok = |ms| Reply::Answer { outcome: Outcome::Ok, at: at(ms) };
        assert_eq!(released, [(Ticket(2), ok(20)), (Ticket(1), ok(30))]);
    }

    #[test]
    fn an_overrun_service_that_collapses_stays_down_while_the_load_does() {
        let collapse = Collapse {
            knee: 4,
            per_call: 0.5,
            most: 20.0,
            error_cost: Duration::ZERO,
            falls_at: None,
            back_after: Duration::ZERO,
        };
        // 400 calls a second at most; 200 arrive, but for a burst of 100.
        let serve = |collapse| {
            let settings = Settings { collapse, ..settings(4, 60, vec![]) };
            let mut downstream = Downstream::new(settings, Seed(1));
            for i in 0..100 {
                downstream.admit(at(0), &call(i));
            }
            let mut late = |i: &u64| downstream.admit(at(i * 5), &call(1000 + i)).seen(at(i * 5), Duration::from_millis(100)).0;
            (0..2000).map(|i| late(&i)).skip(1000).filter(|outcome| *outcome == Outcome::Ok).count()
        };
        assert_eq!(serve(None), 1000, "it recovers where capacity stays");
        assert!(serve(Some(collapse)) < 100, "and does not where the crowd eats it");
    }

    #[test]
    fn the_hand_starts_and_ends_faults_and_stops_the_timeline() {
        let mut downstream = Downstream::new(settings(9, 0, vec![during(100, 100, Mode::Reset)]), Seed(1));
        downstream.freeze(at(50));
        assert_eq!(outcomes(&mut downstream, 150..151), [Outcome::Ok]);
        downstream.resume(at(200));
        assert_eq!(outcomes(&mut downstream, 260..261), [Outcome::Reset], "it is 110 on the timeline");
        let window = Window { from: downstream.place(at(260)), until: Instant::FAR };
        let id = downstream.start(Outage::plain(window, Mode::Refuse));
        assert_eq!((id, downstream.refuses(at(261)).0), (2, true));
        assert!(downstream.end(id) && !downstream.end(9));
        assert_eq!(downstream.refuses(at(261)), (false, None));
        assert_eq!(downstream.faults(at(261)).iter().map(|f| (f.id, f.active)).collect::<Vec<_>>(), [(2, false), (1, true)]);
        downstream.reset(at(300));
        assert_eq!(outcomes(&mut downstream, 399..401), [Outcome::Ok, Outcome::Reset]);
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
