//! Virtual time: the same scenario, policy, workers, downstream and figures, driven by a calendar of events.
//!
//! ```text
//!            ┌──────────────────── calendar: the earliest, first planned ◄───────┐
//!            ▼                                                                   │
//!  inflow ─► world ─step─► Worker ─commands─► database (store, connections) ─────┤
//!   jobs,     │                          └──► wire ─take─► Downstream ───────────┤
//!   users     └─ timers, bell ───────────────────────────────────────────────────┘
//! ```
//! [`run`] plays one policy once. It knows no clock, no thread and no socket: the same scenario, policy, seed and [`Profile`] give
//! the same journal, entry by entry, on any number of threads, since a run is a function of these. At equal times things happen in the order
//! in which they were planned.
//!
//! How long the real parts take is the profile's: with [`Profile::ideal`] they take no time, and what remains is what policies, workers
//! and downstream do by themselves.
//!
//! What it leaves out:
//! * memory, disk and network bandwidth: only processors and connections run short;
//! * the database's own wear: dead rows, checkpoints, vacuum, plans that change, locks that wait for locks;
//! * who shares the machine: another process would take processor time and is not there;
//! * the order of things that happen within the same microsecond, which the real world decides by accident;
//! * processors that switch between tasks: work is done in order of arrival, to its end;
//! * sockets: none is ever refused for want of ports or files.

mod bell;
mod calendar;
mod chaos;
mod database;
mod desk;
mod heap;
mod inflow;
mod level;
mod outcome;
mod post;
mod replicate;
mod slab;
mod station;
mod store;
mod wire;
mod world;

use std::sync::atomic::AtomicBool;

pub use calendar::Calendar;
pub use outcome::Outcome;
pub use replicate::replicate;
pub use store::{Kind, Store, View};

use crate::journal::{Sink, Tape};
use crate::metrics::{Recorder, Services};
use crate::policy::Policy;
use crate::profile::Profile;
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::time::Instant;
use crate::workload;
use world::World;

/// One policy, to be played once in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The policy.
    pub policy: &'a Policy,
    /// The seed of this repetition.
    pub seed: Seed,
    /// How fast the real parts are.
    pub profile: &'a Profile,
    /// Keep every worker's steps.
    pub tape: bool,
}

/// Why a run has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Time stands still: work begets work within one instant.
    #[error(
        "time stands still at {:.3} s: a failure and its retry take no time at all, and there is no end to them: give the downstream a latency, the policy a delay, or the profile some time for its parts",
        at.as_secs_f64()
    )]
    Standstill {
        /// When.
        at: Instant,
    },
    /// Time hardly moves on: so many calls that no memory holds them.
    #[error(
        "{calls} calls by {:.3} s, for {jobs} jobs, and there is no end to them: give the policy a delay or a limit, or lower `horizon`",
        at.as_secs_f64()
    )]
    Crawl {
        /// When.
        at: Instant,
        /// Calls so far.
        calls: u64,
        /// Jobs in all.
        jobs: u64,
    },
}

/// Plays one policy once. Once `stop` is true workers finish what they have, and the figures cover a part.
///
/// # Errors
/// If time does not move on.
pub fn run(plan: Plan<'_>, stop: &AtomicBool) -> Result<Outcome, Error> {
    let jobs = workload::jobs(&plan.scenario.jobs, plan.seed);
    let mut recorder = Recorder::default();
    let mut services = Services::default();
    let mut tape = plan.tape.then(Tape::default);
    let sink = ((&mut recorder, &mut services), &mut tape);
    let went = World::new(&plan, &jobs, sink).play(Instant::START + plan.scenario.horizon, stop)?;
    Ok(Outcome::of(&plan, jobs, went, recorder, services, tape))
}

/// Plays one policy once before whoever watches, and keeps nothing; returns how many events it had: things that the calendar held.
///
/// # Errors
/// If time does not move on.
pub fn watch(plan: Plan<'_>, sink: &mut impl Sink) -> Result<u64, Error> {
    let jobs = workload::jobs(&plan.scenario.jobs, plan.seed);
    let went = World::new(&plan, &jobs, sink).play(Instant::START + plan.scenario.horizon, &AtomicBool::new(false))?;
    Ok(went.events)
}
