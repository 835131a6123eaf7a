//! What happened: attempts, and the figures that are folded from them.
//!
//! Everything is a fold over the journal: [`Recorder`] is the sink that keeps attempts and counts, [`Summary::of`] makes figures of
//! them, [`audit`] checks that they can be true. This room knows nothing of how a run was made, in virtual time or in real
//! time, and nothing of how figures are drawn.

mod aftermath;
mod attempt;
mod audit;
mod by_job;
mod catalog;
mod chaos;
mod engine;
mod interval;
mod limit;
mod occurrence;
mod peak;
mod recorder;
mod service;
mod stock;
mod summary;
mod users;

pub use aftermath::{Aftermath, works};
pub use attempt::{Attempt, End, Fate, JobRecord, RunRecord};
pub use audit::{Terms, audit, ledger};
pub use catalog::{Better, METRICS, Metric, Unit, Value};
pub use chaos::{Blow, Cause, Cost, Repeat, Target, costs, repeats};
pub use engine::{ENGINE_METRICS, EngineMetric};
pub use interval::{median_ranks, share_interval};
pub use limit::{Limit, Sample, timer_late_p99};
pub use occurrence::{OCCURRENCES, Occurrence};
pub use peak::{Peak, busiest_window};
pub use recorder::{Recorder, Tally, histogram, record};
pub use service::{Service, Services, UserCall};
pub use stock::{Row, Stock, Taken};
pub use summary::{Counts, Lens, Percentiles, Summary};
pub use users::{UserFigures, UserPhase};
