//! `simq validate`: every problem of every file, and a line for each file that has none.

use std::io::{self, Write};

use super::{Exit, args, exit, scenario};
use crate::scenario::Scenario;
use crate::time::show;

pub(super) fn main(args: args::Validate) -> anyhow::Result<Exit> {
    let mut result = Exit::Done;
    for path in &args.files {
        match scenario::load(path) {
            Ok((scenario, _)) => writeln!(io::stdout().lock(), "{}: ok: {}", path.display(), summary(&scenario))?,
            Err(error) => result = exit::report(&error),
        }
    }
    Ok(result)
}

/// What a run of it would be, in a line.
fn summary(scenario: &Scenario) -> String {
    let policies = scenario.policies.len() as u64;
    let runs = policies * u64::from(scenario.repetitions);
    let blows = scenario.strikes(scenario.seed).len() as u64;
    let chaos = if blows > 0 { format!("{}, ", counted(blows, "blow of chaos", "blows of chaos")) } else { String::new() };
    format!(
        "{}, {}, {}, {chaos}{} of at most {}",
        counted(policies, "policy", "policies"),
        counted(scenario.job_count(), "job", "jobs"),
        counted(scenario.downstream.outages.len() as u64, "outage", "outages"),
        counted(runs, "run", "runs"),
        show(scenario.horizon),
    )
}

/// A number with thousands set apart, and its noun.
fn counted(number: u64, one: &str, many: &str) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(counted(1, "job", "jobs"), "1 job");
        assert_eq!(counted(1_200, "job", "jobs"), "1,200 jobs");
        assert_eq!(counted(10_000_000, "job", "jobs"), "10,000,000 jobs");
        assert_eq!(counted(999, "job", "jobs"), "999 jobs");
    }
}
