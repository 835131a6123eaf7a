//! What the published simulator gives: mean and standard deviation of 1,000 runs each.
//!
//! Source: aws-arch-backoff-simulator (the code behind Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015), at revision 66cb169, under
//! Python 3, each run with a seed of its own. The program prints means alone, of 100 runs.

/// A cell of the comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) clients: u32,
    pub(super) policy: Kind,
    /// Mean and standard deviation of the number of writes.
    pub(super) calls: (f64, f64),
    /// Mean and standard deviation of the time until all had succeeded, in milliseconds.
    pub(super) ms: (f64, f64),
}

/// The article's policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    None,
    Exponential,
    Equal,
    Full,
    Decorrelated,
}

/// Runs of the published simulator in each cell.
pub(super) const RUNS: f64 = 1000.0;

const fn cell(clients: u32, policy: Kind, calls: (f64, f64), ms: (f64, f64)) -> Cell {
    Cell { clients, policy, calls, ms }
}

pub(super) const CELLS: [Cell; 20] = [
    cell(10, Kind::None, (50.94, 4.03), (381.0, 34.1)),
    cell(10, Kind::Exponential, (50.61, 4.27), (3416.0, 1335.0)),
    cell(10, Kind::Equal, (42.62, 2.49), (732.3, 182.0)),
    cell(10, Kind::Full, (39.05, 2.26), (472.2, 110.0)),
    cell(10, Kind::Decorrelated, (37.71, 2.26), (435.5, 86.0)),
    cell(20, Kind::None, (152.73, 12.78), (604.8, 56.2)),
    cell(20, Kind::Exponential, (150.20, 13.61), (14_502.0, 2805.0)),
    cell(20, Kind::Equal, (108.13, 4.19), (1633.5, 456.0)),
    cell(20, Kind::Full, (100.20, 3.52), (1014.7, 275.0)),
    cell(20, Kind::Decorrelated, (101.11, 4.75), (814.5, 173.0)),
    cell(50, Kind::None, (690.15, 16.92), (1139.6, 42.1)),
    cell(50, Kind::Exponential, (624.37, 28.59), (36_469.0, 3170.0)),
    cell(50, Kind::Equal, (347.52, 5.97), (4237.9, 572.0)),
    cell(50, Kind::Full, (332.81, 4.98), (2860.8, 549.0)),
    cell(50, Kind::Decorrelated, (374.48, 12.33), (2225.0, 508.0)),
    cell(100, Kind::None, (2423.53, 32.16), (2028.8, 44.1)),
    cell(100, Kind::Exponential, (1856.93, 59.87), (63_531.0, 3805.0)),
    cell(100, Kind::Equal, (812.52, 8.15), (6639.7, 665.0)),
    cell(100, Kind::Full, (795.64, 6.97), (4872.9, 545.0)),
    cell(100, Kind::Decorrelated, (1000.47, 28.47), (4573.4, 631.0)),
];
