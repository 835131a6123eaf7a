//! A hand on the timeline and on the faults, for a downstream that stands alone.

use serde::Serialize;

use super::fault::Fault;
use super::timeline::Timeline;
use super::{Downstream, Mode, Outage};
use crate::time::Instant;

/// A fault as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultState {
    /// Its number, by which it can be ended.
    pub id: u32,
    /// What it is.
    #[serde(flatten)]
    pub outage: Outage,
    /// Whether it strikes at this moment.
    pub active: bool,
    /// Whether it was ended by hand.
    pub ended: bool,
}

impl Downstream {
    /// Where the timeline is.
    pub fn place(&self, now: Instant) -> Instant {
        self.timeline.place(now)
    }

    /// Whether the timeline stands still.
    pub fn is_frozen(&self) -> bool {
        self.timeline.is_frozen()
    }

    /// Stops the timeline where it is: windows neither begin nor end. Servers go on.
    pub fn freeze(&mut self, now: Instant) {
        self.timeline.freeze(now);
    }

    /// Lets the timeline go on from where it stands.
    pub fn resume(&mut self, now: Instant) {
        self.timeline.resume(now);
    }

    /// Back to the start of the timeline: the servers idle, limits unused, the scenario's faults as written, those started by
    /// hand gone. A frozen timeline stays frozen, at its start.
    pub fn reset(&mut self, now: Instant) {
        let frozen = self.is_frozen();
        *self = Downstream::new(self.settings.clone(), self.seed);
        self.latest = now;
        self.timeline = if frozen { Timeline::Frozen(Instant::START) } else { Timeline::Behind(now.since_start()) };
        for fault in &mut self.faults {
            fault.forget();
        }
    }

    /// Starts a fault; its window is of the timeline. Returns its number.
    pub fn start(&mut self, outage: Outage) -> u32 {
        self.numbered += 1;
        self.faults.push(Fault::new(outage, self.numbered, self.seed));
        self.sort();
        self.numbered
    }

    /// Ends a fault for good; false if there is none of this number.
    pub fn end(&mut self, id: u32) -> bool {
        let found = self.faults.iter_mut().find(|fault| fault.id == id);
        found.map(|fault| fault.ended = true).is_some()
    }

    /// Every fault, in the order in which calls meet them.
    pub fn faults(&self, now: Instant) -> Vec<FaultState> {
        let place = self.place(now);
        let state = |fault: &Fault| FaultState {
            id: fault.id,
            outage: fault.outage.clone(),
            active: fault.turn(place).is_some(),
            ended: fault.ended,
        };
        self.faults.iter().map(state).collect()
    }

    /// Calls that are worked on or wait.
    pub fn in_house(&mut self, now: Instant) -> usize {
        self.house.calls(now)
    }

    /// Whether nobody listens `now`, and when on the clock that may change next.
    pub fn refuses(&self, now: Instant) -> (bool, Option<Instant>) {
        let place = self.place(now);
        let faults = || self.faults.iter().filter(|fault| !fault.ended && fault.outage.mode == Mode::Refuse);
        let refuses = faults().any(|fault| fault.outage.turn(place).is_some());
        let edge = faults().filter_map(|fault| fault.outage.next_edge(place)).min();
        (refuses, edge.and_then(|edge| self.timeline.clock(edge)))
    }

    pub(super) fn sort(&mut self) {
        self.faults.sort_by_key(|fault| (fault.outage.mode.layer(), fault.outage.window.from, fault.id));
    }
}
