//! How fast is the engine, and how far from what this Postgres can do at all?
//!
//! Needs no set-up: `cargo bench --bench engine` starts a throwaway server of its own. Everything is measured on that one server, in turns,
//! and reported as medians and as ratios against a raw limit of the same run: hand-written statements in a loop, with no
//! engine round them. Times alone say more about the machine than about the engine.
//!
//! `cargo bench --bench engine -- drain` runs one part: drain, lifecycle, putting, cost, snapshot, pickup.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark measures this machine's time")]

mod cost;
mod drain;
mod lifecycle;
mod pickup;
mod place;
mod putting;
mod raw;
mod snapshot;
mod tell;

use place::Place;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runs = |part: &str| wanted.is_empty() || wanted.iter().any(|word| word == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let place = Place::open().await;
        if runs("drain") {
            drain::measure(&place).await;
        }
        if runs("lifecycle") {
            lifecycle::measure(&place).await;
        }
        if runs("putting") {
            putting::measure(&place).await;
        }
        if runs("cost") {
            cost::measure(&place).await;
        }
        if runs("snapshot") {
            snapshot::measure(&place).await;
        }
        if runs("pickup") {
            pickup::measure(&place).await;
        }
        place.close().await;
    });
}
