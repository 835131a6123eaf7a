//! The `simq` command: see [`simq::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    simq::cli::main()
}
