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
mod limit;
mod peak;
mod recorder;
mod service;
mod summary;
mod users;

pub use aftermath::{Aftermath, works};
pub use attempt::{Attempt, End, Fate, JobRecord, RunRecord};
pub use audit::audit;
pub use by_job::{Finishes, finishes};
pub use catalog::{Better, METRICS, Metric, Unit, Value};
pub use limit::{Limit, Sample, timer_late_p99};
pub use peak::{Peak, busiest_window};
pub use recorder::{Recorder, Tally, histogram, record};
pub use service::{Service, Services, UserCall};
pub use summary::{Counts, Lens, Percentiles, Summary};
pub use users::{UserFigures, UserPhase};
