//! Behaviour, a file each. One binary, so that the suite links once.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cluster;
mod herd;
mod policies;
mod postgres;
mod processes;
mod reports;
mod scenario_errors;
