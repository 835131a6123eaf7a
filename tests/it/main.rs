//! Behaviour, a file each. One binary, so that the suite links once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bench;
mod cluster;
mod conformance;
mod crash;
mod herd;
mod play;
mod postgres;
mod processes;
mod replay;
mod reports;
mod runs;
mod scenario_errors;
mod store;
