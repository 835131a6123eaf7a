//! What a fault makes of a call.

use std::time::Duration;

use super::{Limiter, Mode, Outage};
use crate::call::{Call, Label, Outcome, Reply};
use crate::rng::{Seed, Stream};
use crate::time::{Instant, Window};

/// A fault in the course of a run.
#[derive(Debug)]
pub(in crate::downstream) struct Fault {
    pub(in crate::downstream) outage: Outage,
    /// Its number: the place in the scenario, or the order in which it was started by hand; from 1.
    pub(in crate::downstream) id: u32,
    /// Ended by hand.
    pub(in crate::downstream) ended: bool,
    route: Option<Label>,
    luck: Seed,
    limiter: Option<Limiter>,
}

/// How an answer is spoilt on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::downstream) enum Broken {
    Truncated,
    Garbage,
}

/// What all faults together make of a call that reaches the servers.
#[derive(Clone, Copy, Debug)]
pub(in crate::downstream) struct Effects {
    /// Share of calls that do not fail.
    pub(in crate::downstream) spared: f64,
    /// Servers that are left.
    pub(in crate::downstream) servers: u32,
    /// How long the body dribbles.
    pub(in crate::downstream) dribble: Duration,
    /// How the answer is spoilt.
    pub(in crate::downstream) broken: Option<Broken>,
}

/// A reply that ends a call's way, and whether its Retry-After is a date.
pub(in crate::downstream) type Ended = (Reply, bool);

impl Fault {
    pub(in crate::downstream) fn new(outage: Outage, id: u32, seed: Seed) -> Fault {
        let mut fault =
            Fault { id, ended: false, route: outage.route.as_deref().map(Label::of), luck: seed.part(id), limiter: None, outage };
        fault.forget();
        fault
    }

    /// Back to how it was before the first call.
    pub(in crate::downstream) fn forget(&mut self) {
        self.limiter = match self.outage.mode {
            Mode::RateLimit(limit) => Some(Limiter::new(limit, self.outage.window.from)),
            _ => None,
        };
    }

    /// The turn it is in at this place of the timeline.
    pub(in crate::downstream) fn turn(&self, place: Instant) -> Option<Window> {
        if self.ended { None } else { self.outage.turn(place) }
    }

    /// Meets a call that arrives `now`, at this `place` of the timeline: answers it, or adds to the effects.
    pub(in crate::downstream) fn meet(
        &mut self,
        now: Instant,
        place: Instant,
        call: &Call,
        effects: &mut Effects,
    ) -> Option<Ended> {
        let turn = self.turn(place)?;
        if !self.is_for(call) {
            return None;
        }
        let intensity = self.outage.intensity(&turn, place);
        let status = |code, retry_after| Reply::Answer { outcome: Outcome::Status { code, retry_after }, at: now };
        let says = |outcome| Some((Reply::Answer { outcome, at: now }, false));
        match self.outage.mode {
            Mode::Brownout { error_rate, servers, .. } => {
                if let Some(left) = servers {
                    let gone = f64::from(effects.servers.saturating_sub(left)) * intensity;
                    effects.servers = (effects.servers - gone.round() as u32).max(1);
                }
                if self.strikes(call, self.outage.probability) {
                    effects.spared *= 1.0 - error_rate * intensity;
                }
                None
            }
            Mode::SlowStart { .. } => None,
            Mode::Permanent { code } => self.marks(call).then(|| (status(code, None), false)),
            _ if !self.strikes(call, self.outage.probability * intensity) => None,
            Mode::Unavailable { retry_after, dated } => Some((status(503, retry_after), dated)),
            Mode::Refuse => Some((Reply::Refuse, false)),
            Mode::Hang => Some((Reply::Silence, false)),
            Mode::Reset => says(Outcome::Reset),
            Mode::Maintenance => says(Outcome::WrongBody),
            Mode::RateLimit(limit) => {
                let hint = self.limiter.as_mut()?.take(now, call.caller).err()?;
                Some((status(429, hint), limit.dated))
            }
            Mode::SlowBody { takes } => {
                effects.dribble = takes;
                None
            }
            Mode::Truncated => {
                effects.broken.get_or_insert(Broken::Truncated);
                None
            }
            Mode::Garbage => {
                effects.broken.get_or_insert(Broken::Garbage);
                None
            }
        }
    }

    /// The factor on the service time of a call that is started at this place of the timeline.
    pub(in crate::downstream) fn slower(&self, place: Instant, call: &Call) -> f64 {
        let slows = matches!(self.outage.mode, Mode::Brownout { .. } | Mode::SlowStart { .. });
        let Some(turn) = self.turn(place).filter(|_| slows && self.is_for(call)) else { return 1.0 };
        match self.outage.mode {
            Mode::Brownout { slowdown, .. } if self.strikes(call, self.outage.probability) => {
                1.0 + (slowdown - 1.0) * self.outage.intensity(&turn, place)
            }
            Mode::SlowStart { from } => {
                let passed = place.since(turn.from).as_secs_f64() / turn.length().as_secs_f64();
                1.0 / (from + (1.0 - from) * passed)
            }
            _ => 1.0,
        }
    }

    fn is_for(&self, call: &Call) -> bool {
        self.route.is_none_or(|route| route == call.route)
    }

    fn strikes(&self, call: &Call, probability: f64) -> bool {
        probability >= 1.0 || self.luck.draw(Stream::Strike, call.job, call.attempt).happens(probability)
    }

    /// Whether the job is one of those that always fail; the same at every attempt.
    fn marks(&self, call: &Call) -> bool {
        self.luck.draw(Stream::Mark, call.job, 0).happens(self.outage.probability)
    }
}
