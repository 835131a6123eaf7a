//! The words of `simq gate`, `simq baseline` and `simq compare`.

use std::path::PathBuf;

use clap::Subcommand;

/// In which time a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum InTime {
    /// Simulated: seconds, no noise, exact
    Virtual,
    /// On Postgres, with workers and a downstream
    Real,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Gate {
    /// The scenario file; may be left out with --criterion
    #[arg(required_unless_present = "criterion")]
    pub(in crate::cli) scenario: Option<PathBuf>,
    /// Compare with this baseline
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) baseline: Option<PathBuf>,
    /// Write the baseline anew from this run, if its assertions hold
    #[arg(long, requires = "baseline")]
    pub(in crate::cli) update: bool,
    /// In which time to run; the baseline's if there is one, else virtual
    #[arg(long, value_enum)]
    pub(in crate::cli) time: Option<InTime>,
    /// Repeat each policy so often; as often as in the baseline if there is one, else as the scenario says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in crate::cli) repetitions: Option<u32>,
    /// In real time, compare this figure, within this share of the baseline's median; may be given more than once
    #[arg(long = "metric", value_name = "NAME[=TOLERANCE]")]
    pub(in crate::cli) metrics: Vec<String>,
    /// Judge Criterion's results in this folder, such as target/criterion
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) criterion: Option<PathBuf>,
    /// Against those that `cargo bench -- --save-baseline NAME` saved; `base` are those of the run before
    #[arg(long, value_name = "NAME", default_value = "base", requires = "criterion")]
    pub(in crate::cli) criterion_baseline: String,
    /// How much a bench's median may differ, as a share
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "criterion")]
    pub(in crate::cli) criterion_tolerance: f64,
    /// text, json, markdown, junit, bmf, benchmark-action or github; on stdout, or into a file; may be given more than once
    #[arg(long = "format", value_name = "FORMAT[=FILE]", default_value = "text")]
    pub(in crate::cli) formats: Vec<String>,
    /// Exit with 4 if something is inconclusive
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    /// Use this database instead of a throwaway one, where one is needed
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(in crate::cli) database_url: Option<String>,
    /// Print no progress
    #[arg(long, short)]
    pub(in crate::cli) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Baseline {
    #[command(subcommand)]
    pub(in crate::cli) command: BaselineCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum BaselineCommand {
    /// Run a scenario and keep its figures, or keep those of a report
    Save(BaselineSave),
    /// List the baselines in a folder
    List {
        /// The folder
        #[arg(default_value = "baselines", value_name = "DIR")]
        dir: PathBuf,
    },
    /// Show what a baseline holds
    Show {
        /// The file
        file: PathBuf,
    },
    /// Remove baselines; nothing else is removed
    Rm {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BaselineSave {
    /// The scenario file, or the folder of a report
    #[arg(value_name = "SCENARIO|REPORT")]
    pub(in crate::cli) source: PathBuf,
    /// Write it here instead of baselines/<scenario>.json
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Replace a baseline that is there
    #[arg(long)]
    pub(in crate::cli) update: bool,
    /// In which time to run
    #[arg(long, value_enum, default_value_t = InTime::Virtual)]
    pub(in crate::cli) time: InTime,
    /// Repeat each policy so often; 3 in virtual time and 10 in real time if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in crate::cli) repetitions: Option<u32>,
    /// Use this database instead of a throwaway one
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(in crate::cli) database_url: Option<String>,
    /// Print no progress
    #[arg(long, short)]
    pub(in crate::cli) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct CompareRuns {
    /// A report's folder or its summary.json, or a baseline
    pub(in crate::cli) a: PathBuf,
    /// Another
    pub(in crate::cli) b: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Draw both over each other into this file (needs the reports' timeseries.csv)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) png: Option<PathBuf>,
    /// Only these figures; may be given more than once
    #[arg(long = "metric", value_name = "NAME")]
    pub(in crate::cli) metrics: Vec<String>,
}
