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
//! and the audit of both.
//!
//! **Driver.** `real` (feature `real`): tokio, Postgres, HTTP.
//!
//! **Proof.** [`verify`] results that are known beforehand, and what simq makes of them.
//!
//! **For people.** [`report`] table, CSV, JSON and, with feature `plot`, charts. `cli` (feature `cli`) the command line.
//!
//! ```text
//!  scenario.toml ─► scenario::parse ─► Scenario × Policy × Seed
//!
//!            pure                       simq run: tokio
//!      ┌──────────────┐      ┌──────────────────────────────────┐
//!      │              ◄─step─┼── event ── drive.rs × workers     │
//!      │    Worker    │      │              │   ▲                │
//!      │              ├──────┼── commands ──┘   │                │
//!      └──────────────┘      │     ├─ Claim, Settle ─► Postgres  │
//!      ┌──────────────┐      │     │                   ▲         │
//!      │  Downstream  │      │     │       load.rs ────┘ INSERT  │
//!      │  (+ faults)  ◄─admit┼─ mock.rs ◄── HTTP ── Call         │
//!      │              ├──────┼──► sleeps until reply.at          │
//!      └──────────────┘      └─────────────────┬────────────────┘
//!                                              │ Entry, per worker
//!                  metrics::Recorder ◄─ merge ─┘
//!                        │ Summary, one per policy
//!                        └──► report: table, CSV, JSON, PNG
//! ```
//! A worker is a pure state machine: events in, commands out, `now` handed in. A driver carries the commands out and decides
//! nothing, so that policy, worker, downstream and figures exist once, whatever drives them.

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

pub mod sim;

pub mod verify;

#[cfg(feature = "real")]
#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the real world has clocks")]
pub mod real;

pub mod report;

#[cfg(feature = "cli")]
pub mod cli;

mod nearest;
