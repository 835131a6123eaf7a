//! Behaviour, a file each. One binary, so that the suite links once.
#![allow(clippy::unwrap_used, clippy::disallowed_types, clippy::disallowed_methods, reason = "a test may panic and wait")]

mod cluster;
mod herd;
mod postgres;
mod processes;
mod reports;
mod scenario_errors;
mod tidy;
