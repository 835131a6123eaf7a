//! Two reports' series, to be drawn over each other.

use std::collections::BTreeMap;
#[cfg(feature = "plot")]
use std::time::Duration;

use serde::Deserialize;

/// Two runs of some policies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlay {
    /// What the two are called.
    pub names: [String; 2],
    /// The policies of either, in the order of their names.
    pub policies: Vec<OverlayPolicy>,
}

/// One policy in both runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverlayPolicy {
    /// Its name.
    pub name: String,
    /// The first run's curve and the second's, empty where a run did not have the policy.
    pub curves: [Vec<Curve>; 2],
}

/// A point of both curves of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Curve {
    /// Seconds since the run began.
    pub at: f64,
    /// Requests a second from here on.
    pub rate: f64,
    /// Jobs completed by now.
    pub completed: f64,
}

/// A row of `timeseries.csv`, as far as it is needed.
#[derive(Deserialize)]
struct Row {
    policy: String,
    repetition: u32,
    t_s: f64,
    bin_s: f64,
    requests: f64,
    completed: f64,
}

impl Overlay {
    /// From the texts of two `timeseries.csv`; their first repetitions.
    ///
    /// # Errors
    /// A sentence on the one that can't be read.
    pub fn of(names: [String; 2], tables: [&str; 2]) -> Result<Overlay, String> {
        let mut policies: BTreeMap<String, OverlayPolicy> = BTreeMap::new();
        for (i, table) in tables.into_iter().enumerate() {
            for row in csv::Reader::from_reader(table.as_bytes()).deserialize() {
                let row: Row = row.map_err(|error| format!("the timeseries.csv of {} can't be read: {error}", names[i]))?;
                if row.repetition > 1 {
                    continue;
                }
                let policy = policies.entry(row.policy.clone()).or_default();
                policy.name = row.policy;
                let before = policy.curves[i].last().map_or(0.0, |point| point.completed);
                let rate = if row.bin_s > 0.0 { row.requests / row.bin_s } else { 0.0 };
                policy.curves[i].push(Curve { at: row.t_s, rate, completed: before + row.completed });
            }
        }
        Ok(Overlay { names, policies: policies.into_values().collect() })
    }

    /// How long the longer of the two lasted.
    #[cfg(feature = "plot")]
    pub(super) fn span(&self) -> Duration {
        Duration::from_secs_f64(self.most(|point| point.at).max(1e-3))
    }

    /// The greatest value of all points.
    #[cfg(feature = "plot")]
    pub(super) fn most(&self, of: impl Fn(&Curve) -> f64) -> f64 {
        let points = self.policies.iter().flat_map(|policy| policy.curves.iter().flatten());
        points.map(of).fold(0.0, f64::max)
    }
}
