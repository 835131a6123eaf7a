//! The words of the command line.

mod gate;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(super) use gate::{Baseline, BaselineCommand, BaselineSave, CompareRuns, Gate, InTime};

const EXIT_CODES: &str = "Exit codes: 0 done, 1 a fault in simq, 2 usage or a bad scenario, 3 an assertion or the gate says no, \
4 the measurement is not to be trusted (with --strict), or can't be compared, 5 the environment (database, ports, space), 6 the audit failed, 130 interrupted.";

/// What will your retries do to a service that is down? Measure it.
#[derive(Debug, Parser)]
#[command(name = "simq", version, about, propagate_version = true, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a scenario for real: Postgres, workers, a flaky HTTP service; once for each policy
    Run(Run),
    /// Play a scenario in virtual time: no database, no waiting, the same figures for the same seed
    Sim(Sim),
    /// Run a scenario and decide: its assertions, and what changed against a baseline
    Gate(Gate),
    /// Save, list, show and remove baselines
    Baseline(Baseline),
    /// Lay two runs beside each other: report folders or baselines
    Compare(CompareRuns),
    /// Measure how fast this machine's Postgres, HTTP and timers are, for `simq sim`
    Calibrate(Calibrate),
    /// Run a scenario for real and in virtual time, and lay the two over each other
    Fidelity(Fidelity),
    /// Hold simq against queueing theory and a published simulator
    Verify(Verify),
    /// Serve a scenario's downstream alone, for clients in any language
    Mock(Mock),
    /// Check scenario files without running them
    Validate(Validate),
    /// Print the JSON schema of scenario files, for editors
    Schema,
    /// List the retry policies that real systems ship, show one delay by delay, or compare several
    Policies(Policies),
    /// Start a throwaway Postgres and keep it until interrupted, or for the length of a command
    Postgres(Postgres),
    /// Own a throwaway Postgres for a parent process (internal)
    #[command(hide = true)]
    PostgresGuard,
    /// Work off the jobs of a schema that is there, until stdin ends (internal)
    #[command(hide = true)]
    Work(Work),
}

#[derive(Debug, clap::Args)]
pub(super) struct Work {
    /// The database
    #[arg(long, value_name = "URL")]
    pub(super) database_url: String,
    /// The schema, made by simq
    #[arg(long)]
    pub(super) schema: String,
    /// The service to call
    #[arg(long)]
    pub(super) downstream: SocketAddr,
    /// The number of the first worker; no other process may have it
    #[arg(long)]
    pub(super) first: u32,
    /// How many workers
    #[arg(long, default_value_t = 1)]
    pub(super) count: u32,
    /// Attempts at once, each
    #[arg(long, default_value_t = 1)]
    pub(super) slots: u32,
    /// The lease in milliseconds
    #[arg(long, default_value_t = 30_000)]
    pub(super) lease_ms: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// The scenario file
    pub(super) scenario: PathBuf,
    /// Use this database instead of a throwaway one; simq works in a schema of its own
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(super) database_url: Option<String>,
    /// Leave the schemas behind (needs a database of your own)
    #[arg(long)]
    pub(super) keep: bool,
    /// Write the report here instead of reports/<scenario>
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Run only this policy; may be given more than once
    #[arg(long = "policy", value_name = "NAME")]
    pub(super) policies: Vec<String>,
    /// Use this seed instead of the scenario's
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Repeat each policy so often instead of as the scenario says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repetitions: Option<u32>,
    /// Print the summary as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
    /// Print nothing but errors (and JSON, if asked for)
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Exit with 4 if the harness spoiled the measurement
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Sim {
    /// The scenario file
    pub(super) scenario: PathBuf,
    /// Use this seed instead of the scenario's
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Play each policy under so many seeds, on all processors, instead of as often as the scenario says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) seeds: Option<u32>,
    /// How fast the real parts are, as `simq calibrate` wrote it [default: simq-profile.toml if it is there, or else one machine's figures that are built in]
    #[arg(long, value_name = "FILE", conflicts_with = "ideal")]
    pub(super) profile: Option<PathBuf>,
    /// Let store, network and timers take no time
    #[arg(long)]
    pub(super) ideal: bool,
    /// Write the report here instead of reports/<scenario>-sim
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Play only this policy; may be given more than once
    #[arg(long = "policy", value_name = "NAME")]
    pub(super) policies: Vec<String>,
    /// Use so many threads instead of one per processor; the figures do not depend on it
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<std::num::NonZero<usize>>,
    /// Print the summary as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
    /// Print nothing but errors (and JSON, if asked for)
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Calibrate {
    /// Use this database instead of a throwaway one; it must be on this machine
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(super) database_url: Option<String>,
    /// Write the profile here; `simq sim` looks for it under this name
    #[arg(long, value_name = "FILE", default_value = "simq-profile.toml")]
    pub(super) out: PathBuf,
    /// Do a tenth of the work: for trying it out
    #[arg(long)]
    pub(super) quick: bool,
    /// Let the throwaway server survive a crash of the operating system (fsync on)
    #[arg(long)]
    pub(super) durable: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Fidelity {
    /// The scenario file
    pub(super) scenario: PathBuf,
    /// Use this database instead of a throwaway one; it must be on this machine
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(super) database_url: Option<String>,
    /// Run each policy so often for real
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repetitions: u32,
    /// Play each policy under so many seeds in virtual time; the first are those of the real runs
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) seeds: u32,
    /// Use this profile instead of measuring this machine first
    #[arg(long, value_name = "FILE")]
    pub(super) profile: Option<PathBuf>,
    /// Compare only this policy; may be given more than once
    #[arg(long = "policy", value_name = "NAME")]
    pub(super) policies: Vec<String>,
    /// Use this seed instead of the scenario's
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Write the report here instead of reports/<scenario>-fidelity
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the result as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
    /// Print nothing but errors (and JSON, if asked for)
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    /// Play less of it: a few seconds
    #[arg(long)]
    pub(super) quick: bool,
    /// Use another seed: one check in some sixteen thousand then fails by chance
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Use so many threads instead of one per processor; the figures do not depend on it
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<std::num::NonZero<usize>>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// When a timeline starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Start {
    /// At once
    Now,
    /// With the first request
    OnFirstRequest,
}

#[derive(Debug, clap::Args)]
pub(super) struct Mock {
    /// The scenario file; its jobs and policies are not run
    #[arg(value_name = "FILE")]
    pub(super) scenario: PathBuf,
    /// Listen here; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(super) listen: SocketAddr,
    /// Serve the admin API and the metrics here
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(super) admin: SocketAddr,
    /// When the timeline starts
    #[arg(long, value_enum, default_value_t = Start::Now)]
    pub(super) start: Start,
    /// Log requests here, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub(super) log: Option<PathBuf>,
    /// Use this seed instead of the scenario's
    #[arg(long)]
    pub(super) seed: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Validate {
    /// The scenario files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = false)]
pub(super) struct Policies {
    /// The policies of this scenario, before the presets
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) scenario: Option<PathBuf>,
    /// Print the list as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(subcommand)]
    pub(super) command: Option<PoliciesCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum PoliciesCommand {
    /// Show a policy: the delay after each attempt, its mean and the time so far
    Show(Show),
    /// Lay policies beside each other
    Compare(Compare),
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The policy's name, as `simq policies` lists it
    pub(super) name: String,
    /// Show the delays after so many attempts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) attempts: Option<u32>,
    /// Print JSON, delays in seconds
    #[arg(long)]
    pub(super) json: bool,
    /// Draw it into this file
    #[arg(long, value_name = "FILE")]
    pub(super) png: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Compare {
    /// The policies' names
    #[arg(required = true, num_args = 1..=12, value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Show the delays after so many attempts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) attempts: Option<u32>,
    /// Print JSON, delays in seconds
    #[arg(long)]
    pub(super) json: bool,
    /// Draw them into this file
    #[arg(long, value_name = "FILE")]
    pub(super) png: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Postgres {
    /// Apply simq's migrations to the database first
    #[arg(long)]
    pub(super) migrate: bool,
    /// Survive a crash of the operating system (fsync on)
    #[arg(long)]
    pub(super) durable: bool,
    /// Run this command with DATABASE_URL set, then stop the server and exit as the command did
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}
