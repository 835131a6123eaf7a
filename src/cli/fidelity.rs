//! `simq fidelity`: a scenario in both worlds, laid over each other.

use std::num::NonZero;
use std::path::PathBuf;

use anyhow::{Context, anyhow};

use super::calibrate::{given, measure};
use super::database::Lent;
use super::exit::Code;
use super::run::{Wanted, compare, narrow, try_out};
use super::say::say;
use super::sim::{play, read_profile};
use super::{Exit, args, scenario};
use crate::profile::Profile;
use crate::report::Comparison;
use crate::report::fidelity::{Fidelity, markdown, rows, write_fidelity};
use crate::scenario::Scenario;

pub(super) fn main(args: &args::Fidelity) -> anyhow::Result<Exit> {
    let (scenario, _) = scenario::load(&args.scenario)?;
    let wanted = Wanted { policies: &args.policies, repetitions: Some(args.repetitions), seed: args.seed };
    let scenario = narrow(scenario, &wanted)?;
    let profile = args.profile.as_deref().map(read_profile).transpose()?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("reports").join(format!("{}-fidelity", scenario.name)));
    try_out(&out)?;
    super::postgres::shed_pgoptions()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (profile, real) = runtime.block_on(for_real(&scenario, profile, args))?;
    drop(runtime);
    if real.partial || real.runs.is_empty() {
        say("stopped: there is nothing to compare");
        return Ok(Exit::Interrupted);
    }
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let virtually = Scenario { repetitions: args.seeds.max(args.repetitions), ..scenario };
    let predicted = play(virtually, &profile, threads, super::stop::listen(args.quiet)?, args.quiet)?.comparison;
    if predicted.partial {
        return Ok(Exit::Interrupted);
    }
    conclude(&Fidelity { real, predicted }, &out, args)
}

/// Measures the machine, unless somebody has, and runs the scenario on it.
async fn for_real(scenario: &Scenario, profile: Option<Profile>, args: &args::Fidelity) -> anyhow::Result<(Profile, Comparison)> {
    let profile = match profile {
        Some(profile) => profile,
        None => {
            let tell = |line: &str| {
                if !args.quiet {
                    say(line);
                }
            };
            let lent = Lent::borrow(given(args.database_url.as_deref()), scenario.database.durable, &tell).await?;
            let measured = measure(&lent, false, args.quiet).await;
            lent.give_back().await?;
            measured?.profile
        }
    };
    let run = args::Run {
        scenario: args.scenario.clone(),
        database_url: args.database_url.clone(),
        keep: false,
        out: None,
        policies: vec![],
        seed: None,
        repetitions: None,
        json: false,
        quiet: args.quiet,
        strict: false,
    };
    Ok((profile, compare(scenario.clone(), &run).await?))
}

/// Writes the report, prints the result, and says how to exit: what is predicted badly is a result and no failure.
fn conclude(fidelity: &Fidelity, out: &std::path::Path, args: &args::Fidelity) -> anyhow::Result<Exit> {
    write_fidelity(fidelity, out).context(Code(Exit::Environment))?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rows(fidelity))?);
    } else if !args.quiet {
        println!("{}", markdown(fidelity));
        println!("Report: {}", out.display());
    }
    let spoiled = fidelity.real.warnings.iter().find(|warning| warning.starts_with(super::run::AUDIT));
    match spoiled {
        Some(warning) => Err(anyhow!(Code(Exit::Audit)).context(warning.clone())),
        None => Ok(Exit::Done),
    }
}
