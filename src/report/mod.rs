//! For people: files, charts, a table and a few sentences, made of a [`Comparison`] and of nothing else.
//!
//! ```text
//!                ┌─► table     aligned text, for the terminal
//!  Comparison ───┼─► verdict   two or three sentences
//!                └─► write     a folder: summary.csv · seeds.csv · timeseries.csv · attempts.csv · jobs.csv · summary.json · *.png
//! ```
//! Nothing is measured here: figures come from [`METRICS`](crate::metrics::METRICS), curves from the records. Two rules hold
//! in every output: a policy that loses jobs is shown as losing them before anything is said of its speed, and a value that
//! does not exist is left empty and never drawn as zero.
//!
//! A report is written whole or not at all: see [`write()`].

mod across;
#[cfg(feature = "plot")]
mod chart;
mod comparison;
mod csv;
pub mod fidelity;
mod figure;
mod folder;
mod harm;
mod json;
mod overlay;
mod seeds;
mod series;
mod table;
mod toll;
mod verdict;

use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "plot")]
pub use chart::{save_delays, save_overlay};
pub use comparison::{Comparison, Conditions, Run};
pub use folder::try_out;
pub use json::summary as summary_json;
pub use overlay::{Curve, Overlay, OverlayPolicy};
pub use table::table;
pub use verdict::verdict;

use folder::Draft;

/// The delays of a policy, to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Delays {
    /// Its name.
    pub name: String,
    /// Per retry the shortest, the longest and the mean, in seconds.
    pub intervals: Vec<(f64, f64, f64)>,
    /// The retries it allows, if there is a limit.
    pub retries: Option<u32>,
}

/// A report that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The folder.
    pub dir: PathBuf,
    /// The names of the files in it, tables first, then charts.
    pub files: Vec<String>,
}

/// Why a report could not be written. Nothing half-written is left behind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be made, moved or removed.
    #[error("could not write `{}`: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The target is a folder that simq did not make: replacing it could destroy a person's files.
    #[error("`{}` is not a simq report (it holds `{found}`): name another folder, or move that one away", dir.display())]
    Alien {
        /// The folder.
        dir: PathBuf,
        /// What does not belong in a report.
        found: String,
    },
    /// The folder is a mount point, or where this process stands.
    #[error("`{}` can't be swapped for a new report, since it is a mount point or the current directory: name a folder inside it", .0.display())]
    Fixed(PathBuf),
    /// The target is not a folder.
    #[error("`{}` is not a folder: name another place for the report", .0.display())]
    NotAFolder(PathBuf),
    /// A chart could not be drawn.
    #[error("could not draw `{chart}`: {reason}")]
    Draw {
        /// The chart's file.
        chart: String,
        /// What the drawing library said.
        reason: String,
    },
}

impl Error {
    /// Turns what the system says about `path` into an error of this room.
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Write { path: path.to_owned(), source }
    }
}

/// Writes the report of a comparison into the folder `dir`, whole or not at all.
///
/// Everything is written into a hidden sibling of `dir`, which then takes its place by a rename. An older report there is
/// replaced; a folder that holds anything else is left alone. `scenario_source` is the scenario file's text, kept verbatim.
///
/// # Errors
/// If `dir` is something other than a report or an empty folder, or if the system refuses a file or a rename. After an error
/// `dir` is as it was.
pub fn write(comparison: &Comparison, dir: &Path, scenario_source: &str) -> Result<Written, Error> {
    let draft = Draft::beside(dir)?;
    let mut files = Vec::new();
    let mut file = |name: &str| {
        files.push(name.to_owned());
        draft.file(name)
    };
    csv::summary(comparison, &file("summary.csv"))?;
    if seeds::apply(comparison) {
        csv::across(comparison, &file("seeds.csv"))?;
    }
    csv::timeseries(comparison, &file("timeseries.csv"))?;
    csv::attempts(comparison, &file("attempts.csv"))?;
    csv::jobs(comparison, &file("jobs.csv"))?;
    if toll::applies(comparison) {
        toll::blows(comparison, &file("chaos.csv"))?;
        toll::again(comparison, &file("repeats.csv"))?;
    }
    json::write(comparison, scenario_source, &file("summary.json"))?;
    #[cfg(feature = "plot")]
    for chart in chart::CHARTS.iter().filter(|chart| (chart.applies)(comparison)) {
        chart.save(comparison, &file(&format!("{}.png", chart.slug)))?;
    }
    let dir = draft.publish()?;
    Ok(Written { dir, files })
}
