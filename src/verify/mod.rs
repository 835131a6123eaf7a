//! Is simq right? Results that are known beforehand, and what simq makes of them.
//!
//! Queueing theory, combinatorics and a published simulator say what must come out of simple models. Each is played by the parts that
//! runs are made of: where it can be written as a scenario it is one, and [`crate::sim`] plays it on an ideal machine, workers and
//! store included; two (a closed loop, a lock) have no jobs and are put together from [`Calendar`](crate::sim::Calendar), downstream, policy and
//! draws.
//!
//! A mean is compared in units of its own standard error, which comes from the same run: from independent repetitions, or from
//! the means of long batches where values in a row depend on each other. Four of them are allowed; chance alone goes further once in some
//! sixteen thousand times. What is exact must be met exactly. Seeds are fixed, so a verdict does not change from one day to the next.
//!
//! `simq verify` prints it all, and the tests do the same on a smaller scale.

mod check;
mod closed;
mod contention;
mod delays;
mod formulas;
mod outage;
mod play;
mod published;
mod queues;
mod retrial;
mod stampede;
mod tries;

pub use check::{Check, Effort, Within};
pub use contention::{Contention, contend};

/// Checks of one subject.
#[derive(Clone, Copy, Debug)]
pub struct Chapter {
    /// What it is about.
    pub title: &'static str,
    /// How it is played, and where the expected figures are from.
    pub about: &'static str,
    /// Does it.
    pub run: fn(&Effort) -> Vec<Check>,
}

/// Everything, in the order in which it is told.
pub const CHAPTERS: [Chapter; 12] = [
    Chapter {
        title: "Queues",
        about: "a scenario of Poisson arrivals without retries · Erlang B and C, Pollaczek and Khinchine, M/M/1/K",
        run: queues::checks,
    },
    Chapter {
        title: "Backoff at a busy server",
        about: "a scenario: a server without a queue, exponential delays, for ever · the M/M/1 retrial queue",
        run: retrial::checks,
    },
    Chapter {
        title: "A closed loop",
        about: "clients that think, put together from parts · exact mean value analysis",
        run: closed::checks,
    },
    Chapter {
        title: "Tries",
        about: "a scenario that fails each call with probability p · (1 − pⁿ⁺¹) / (1 − p) tries, 1 − pⁿ⁺¹ successes; budgets",
        run: tries::checks,
    },
    Chapter { title: "Delays", about: "policies alone · means and variances of uniform draws", run: delays::checks },
    Chapter {
        title: "Stampedes",
        about: "a scenario: all fail at once and come back · balls into bins, the herd of a thousand in closed form",
        run: stampede::checks,
    },
    Chapter {
        title: "Outages",
        about: "scenarios · renewal theory at the cap, fluid limits, Little's law, nothing lost",
        run: outage::checks,
    },
    Chapter { title: "Contention, 10 clients", about: CONTENTION, run: contention::of_10 },
    Chapter { title: "Contention, 20 clients", about: CONTENTION, run: contention::of_20 },
    Chapter { title: "Contention, 50 clients", about: CONTENTION, run: contention::of_50 },
    Chapter { title: "Contention, 100 clients", about: CONTENTION, run: contention::of_100 },
    Chapter { title: "Contention, exactly", about: CONTENTION, run: contention::exact },
];

const CONTENTION: &str =
    "clients race for one row under an optimistic lock, put together from parts · 1,000 runs of aws-arch-backoff-simulator";
