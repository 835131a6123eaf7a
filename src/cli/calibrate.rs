//! `simq calibrate`: a machine's profile, for `simq sim`.

use std::path::Path;

use anyhow::Context;

use super::database::Lent;
use super::exit::Code;
use super::say::say;
use super::{Exit, args};
use crate::profile::Profile;
use crate::real::calibrate::{Bench, Calibration, Check, calibrate};

/// Where `simq sim` looks for a profile.
pub(super) const PROFILE: &str = "simq-profile.toml";

pub(super) fn main(args: &args::Calibrate) -> anyhow::Result<Exit> {
    super::postgres::shed_pgoptions()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let interrupted = async {
        let mut signals = super::postgres::Stop::listen()?;
        signals.asked().await;
        anyhow::Ok(())
    };
    let calibration = runtime.block_on(async {
        let lent = Lent::borrow(given(args.database_url.as_deref()), args.durable, &|line| tell(line, args.quiet)).await?;
        let measured = tokio::select! {
            measured = measure(&lent, args.quick, args.quiet) => Some(measured),
            asked = interrupted => asked.map(|()| None)?,
        };
        lent.give_back().await?;
        measured.transpose()
    })?;
    let Some(calibration) = calibration else { return Ok(Exit::Interrupted) };
    save(&args.out, &calibration.profile)?;
    if !args.quiet {
        print(&calibration);
        println!("Profile: {}", args.out.display());
    }
    Ok(Exit::Done)
}

pub(super) fn given(url: Option<&str>) -> Option<&str> {
    url.filter(|url| !url.is_empty())
}

fn tell(line: &str, quiet: bool) {
    if !quiet {
        say(line);
    }
}

/// Measures the machine, and says of whom the profile is.
pub(super) async fn measure(lent: &Lent, quick: bool, quiet: bool) -> anyhow::Result<Calibration> {
    tell("measuring Postgres, HTTP and timers", quiet);
    let bench = Bench { database: &lent.options, name: format!("{}_calibrate", lent.name()), quick };
    let mut calibration = calibrate(&bench).await.context(Code(Exit::Environment))?;
    let facts = lent.facts().await?;
    let fact = |name: &str| facts.get(name).map_or("unknown", String::as_str);
    let cpu = ["machine.cpu", "machine.model"].into_iter().find_map(|name| facts.get(name));
    calibration.profile.about = format!(
        "{} processors{}, PostgreSQL {} with fsync {}, {} build, measured {}",
        calibration.profile.processors,
        cpu.map(|cpu| format!(" ({cpu})")).unwrap_or_default(),
        fact("postgres.server_version"),
        fact("postgres.fsync"),
        fact("simq.build"),
        fact("run.started"),
    );
    Ok(calibration)
}

/// Written beside and then moved into place: a reader finds a whole profile or none.
fn save(path: &Path, profile: &Profile) -> anyhow::Result<()> {
    let draft = path.with_extension("toml.draft");
    let saved = std::fs::write(&draft, profile.to_toml()).and_then(|()| std::fs::rename(&draft, path));
    if saved.is_err() {
        let _there_is_none = std::fs::remove_file(&draft);
    }
    saved.with_context(|| format!("could not write `{}`", path.display())).context(Code(Exit::Environment))
}

/// What was measured beside what the profile's arithmetic makes of it.
pub(super) fn print(calibration: &Calibration) {
    println!("{:<32} {:>12} {:>12}  ", "", "measured", "by profile");
    for Check { what, measured, predicted, unit } in &calibration.checks {
        println!("{what:<32} {measured:>12.0} {predicted:>12.0}  {unit}");
    }
    println!("\n{}", calibration.profile.to_toml());
}
