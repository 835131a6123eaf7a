//! How fast is virtual time, and how far from what a priority queue alone can do?
//!
//! `cargo bench --bench sim_events` needs no set-up. An *event* is one thing that the calendar held and that came to pass: a statement
//! that takes effect, an answer that arrives, a call that reaches the downstream, a reply, a timer, a reminder. What happens at the same
//! instant in consequence of it is part of it. The bare loop pops and pushes as many entries of a `BinaryHeap`, with as many pending; it does
//! nothing else, so no simulator that plans with a heap can be faster. Both are timed in turn, by the processor time of their thread, and
//! the ratio is the median of the rounds' own.
//!
//! `cargo bench --bench sim_events -- million` runs one part: whole, million, growth, threads, queue.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark measures this machine's time")]

mod bare;
mod clock;
mod growth;
mod million;
mod queue;
mod scenarios;
mod threads;
mod whole;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runs = |part: &str| wanted.is_empty() || wanted.iter().any(|word| word == part);
    if runs("whole") {
        whole::measure();
    }
    if runs("million") {
        million::measure(wanted.is_empty());
    }
    if runs("growth") {
        growth::measure();
    }
    if runs("threads") {
        threads::measure();
    }
    if runs("queue") {
        queue::measure();
    }
}

/// The middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
