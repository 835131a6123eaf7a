//! `simq policies`: what real systems ship, delay by delay.

mod compare;
mod facts;
mod list;
mod show;

use std::path::Path;

use anyhow::anyhow;

use super::exit::Code;
use super::{Exit, args, scenario};
use crate::policy::Policy;
use crate::policy::preset::{self, Preset};

pub(super) fn main(args: args::Policies) -> anyhow::Result<Exit> {
    let file = args.scenario.as_deref();
    match args.command {
        None => list::main(file, args.json),
        Some(args::PoliciesCommand::Show(show)) => show::main(&show, file),
        Some(args::PoliciesCommand::Compare(compare)) => compare::main(&compare, file),
    }
}

/// A policy with its name and where it is from.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    system: String,
    version: String,
    source: String,
    group: String,
    policy: Policy,
}

impl Named {
    fn of(preset: &Preset) -> Named {
        Named {
            name: preset.id.to_owned(),
            system: preset.system.to_owned(),
            version: preset.version.to_owned(),
            source: preset.source.to_owned(),
            group: preset.group.to_string(),
            policy: preset.policy(),
        }
    }
}

/// The policies of a scenario, or every preset.
fn all(file: Option<&Path>) -> anyhow::Result<Vec<Named>> {
    let Some(path) = file else { return Ok(preset::all().map(Named::of).collect()) };
    let (scenario, _) = scenario::load(path)?;
    let shown = path.display().to_string();
    let named = |named: crate::scenario::NamedPolicy| Named {
        name: named.name,
        system: scenario.name.clone(),
        version: String::new(),
        source: shown.clone(),
        group: shown.clone(),
        policy: named.policy,
    };
    Ok(scenario.policies.clone().into_iter().map(named).collect())
}

/// The policy of this name: of the scenario if there is one, else a preset.
fn find(name: &str, file: Option<&Path>) -> anyhow::Result<Named> {
    if let Some(path) = file {
        let policies = all(Some(path))?;
        if let Some(found) = policies.iter().find(|named| named.name == name) {
            return Ok(found.clone());
        }
    }
    if let Some(preset) = preset::find(name) {
        return Ok(Named::of(preset));
    }
    let mut message = format!("there is no policy `{name}`");
    message += &match preset::meant(name) {
        Some(near) => format!(": did you mean `{near}`?"),
        None => ": `simq policies` lists all".to_owned(),
    };
    Err(anyhow!(Code(Exit::Usage)).context(message))
}
