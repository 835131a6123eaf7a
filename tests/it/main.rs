//! Behaviour, a file each. One binary, so that the suite links once.
#![allow(clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods, reason = "a test may panic and wait")]

mod article;
mod bench;
mod cli_run;
mod cluster;
mod conformance;
mod crash;
mod herd;
mod mock;
mod outages;
mod play;
mod policies;
mod postgres;
mod processes;
mod replay;
mod reports;
mod runs;
mod scenario_errors;
mod store;
mod theory;
mod tidy;
mod verify;
