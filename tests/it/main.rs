//! Behaviour, a file each. One binary, so that the suite links once.

mod herd;
mod reports;
mod scenario_errors;
