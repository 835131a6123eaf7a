//! simq: what will your retries do to a service that is down?
#![cfg_attr(not(test), warn(missing_docs))]

pub mod call;
#[cfg(feature = "cli")]
pub mod cli;
pub mod dist;
pub mod downstream;
pub mod job;
pub mod journal;
pub mod metrics;
mod nearest;
pub mod policy;
pub mod queue;
#[cfg(feature = "real")]
pub mod real;
pub mod report;
pub mod rng;
pub mod scenario;
pub mod time;
pub mod worker;
pub mod workload;
