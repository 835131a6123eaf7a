//! Behaviour, a file each. One binary, so that the suite links once.
#![allow(clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods, reason = "a test may panic and wait")]

mod answers;
mod article;
mod bench;
mod chaos;
mod cli_run;
mod cluster;
mod conformance;
mod crash;
mod desk;
mod determinism;
mod faults;
mod fidelity;
mod foreign;
mod gate;
mod herd;
mod mock;
mod outages;
mod play;
mod policies;
mod postgres;
mod processes;
mod proxy;
mod replay;
mod reports;
mod runs;
mod scenario_errors;
mod seeds;
mod store;
mod theory;
mod tidy;
mod tls;
mod verify;
mod virtual_cli;
mod virtual_world;
