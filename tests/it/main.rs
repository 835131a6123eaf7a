//! Behaviour, a file each. One binary, so that the suite links once.

mod cluster;
mod postgres;
mod processes;
