//! The command line: what a person types, turned into calls of the other rooms, and results into exit codes.

mod args;
mod asserted;
mod baseline;
mod calibrate;
mod compare;
mod database;
mod exit;
mod fidelity;
mod gate;
mod headway;
mod mock;
mod policies;
mod postgres;
mod progress;
mod run;
mod say;
mod scenario;
mod schema;
mod sim;
mod stop;
mod validate;
mod verify;
mod work;

use std::process::ExitCode;

use clap::Parser;

pub use exit::Exit;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let args = args::Args::parse();
    let result = match args.command {
        args::Command::Run(args) => run::main(args),
        args::Command::Sim(args) => sim::main(args),
        args::Command::Verify(args) => verify::main(&args),
        args::Command::Gate(args) => gate::main(args),
        args::Command::Baseline(args) => baseline::main(args),
        args::Command::Compare(args) => compare::main(&args),
        args::Command::Calibrate(args) => calibrate::main(&args),
        args::Command::Fidelity(args) => fidelity::main(&args),
        args::Command::Mock(args) => mock::main(&args),
        args::Command::Validate(args) => validate::main(args),
        args::Command::Schema => schema::main(),
        args::Command::Policies(args) => policies::main(args),
        args::Command::Postgres(args) => postgres::main(args),
        args::Command::Work(args) => work::main(&args),
        args::Command::PostgresGuard => postgres::guard(),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error).into(),
    }
}
