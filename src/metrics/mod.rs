//! What happened: attempts, and the figures that are folded from them.
//!
//! This room knows nothing of how a run was made, in virtual time or in real time, and nothing of how figures are drawn.

mod attempt;
mod catalog;
mod peak;

pub use attempt::{Attempt, Fate, JobRecord, RunRecord};
pub use catalog::{Better, METRICS, Metric, Unit, Value};
pub use peak::{Peak, busiest_window};
pub use summary::{Comparison, Conditions, Counts, Limit, Percentiles, Run, Summary};

mod summary;
