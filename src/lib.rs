//! simq: what will your retries do to a service that is down?
//!
//! A backoff-policy simulator and load-test harness for job queues on Postgres. This is the map of the house, in the order in
//! which a newcomer should read it.
//!
//! **Words.** [`time`] instants, windows, durations as text. [`rng`] chance, keyed by job and attempt. [`dist`] distributions of
//! latencies. [`job`] identity, retry memory, states. [`call`] requests, outcomes, replies.
//!
//! **Core, pure.** [`policy`] when a job is tried again. [`downstream`] what an outage does to a call. [`workload`] when jobs
//! arrive. [`queue`] what a store promises, and a store to read by eye. [`worker`] what a worker does next. [`journal`] the
//! three doors through which everything happens, and who watches.
//!
//! **What is asked, and what happened.** [`scenario`] a TOML file, checked as a whole. [`metrics`] attempts, figures folded from them,
//! and the audit of both. [`check`] figures held against assertions and against a baseline.
//!
//! **Two drivers.** [`sim`] virtual time: a calendar of events, a store in memory. [`profile`] what it is told of a machine. `real`
//! (feature `real`): tokio, Postgres, HTTP.
//!
//! **Proof.** [`verify`] results that are known beforehand, and what simq makes of them.
//!
//! **For people.** [`report`] table, CSV, JSON and, with feature `plot`, charts. `cli` (feature `cli`) the command line.
//!
//! ```text
//!  scenario.toml ─► scenario::parse ─► Scenario × Policy × Seed                 the same for both
//!
//!  simq sim: one thread                       pure                 simq run: tokio
//! ┌──────────────────────────────┐      ┌──────────────┐      ┌──────────────────────────────────┐
//! │ calendar ── now, event ──────┼─step─►              ◄─step─┼── event ── drive.rs × workers     │
//! │    ▲                         │      │    Worker    │      │              │   ▲                │
//! │    │   ◄───────── commands ──┼──────┤              ├──────┼── commands ──┘   │                │
//! │    │       │                 │      └──────────────┘      │     ├─ Claim, Settle ─► Postgres  │
//! │    │       ├─ sim::Store     │      ┌──────────────┐      │     │                   ▲         │
//! │    │       │                 │      │  Downstream  │      │     │       load.rs ────┘ INSERT  │
//! │    │       └─ Call ──────────┼admit─►  (+ faults)  ◄─admit┼─ mock.rs ◄── HTTP ── Call         │
//! │    └── planned for reply.at ◄┼──────┤              ├──────┼──► sleeps until reply.at          │
//! └───────────┬──────────────────┘      └──────────────┘      └─────────────────┬────────────────┘
//!             │ Entry { at, what }                                              │ Entry, per worker
//!             └──────────────► metrics::Recorder ◄──────── merge ───────────────┘
//!                                     │ Summary, one per policy
//!                                     └──► report: table, CSV, JSON, PNG
//! ```
//! A worker is a pure state machine: events in, commands out, `now` handed in. A driver carries the commands out and decides
//! nothing, so that policy, worker, downstream and figures exist once, whatever drives them. `sim` and `real` never meet; what one is to
//! predict of the other it is told by a profile.

pub mod time;

pub mod rng;

pub mod dist;

pub mod job;

pub mod call;

pub mod policy;

pub mod downstream;

pub mod workload;

pub mod queue;

pub mod worker;

pub mod journal;

pub mod scenario;

pub mod metrics;

pub mod check;

pub mod profile;

pub mod sim;

pub mod verify;

#[cfg(feature = "real")]
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the real world has clocks")]
pub mod real;

pub mod report;

#[cfg(feature = "cli")]
pub mod cli;

mod nearest;
