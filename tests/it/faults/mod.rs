//! Faults that no scenario can ask for: processes that are killed or stopped at a chosen moment, connections that break on a chosen side of a
//! commit, and backlogs and crowds of a size that matters. Each test shows that its fault struck.

mod cuts;
mod errors;
mod killed;
mod size;
