//! The retry policies that real systems ship, as data: each is one word in a scenario, exact to its source.
//!
//! One table in groups, a file for each. A preset names the system, the version that was read and the file in its repository that
//! decides; its policy is what that system does *without being asked for more*, default number of retries and default classification
//! included. Where a system retries nothing until it is told to, the preset is what most people tell it, and its name says so. Statuses stand for
//! what each system's own errors mean: gRPC's UNAVAILABLE is a 503, a lost connection is `refused` or `reset`.
//!
//! Three oddities of the field are there on purpose, as faults worth showing: tower's generator that is cloned into each request, MassTransit's list that is
//! drawn once, Finagle's jitter on jitter.

mod build;
mod infrastructure;
mod libraries;
mod queues;
mod sdks;
mod workflows;

use std::fmt;

use super::Policy;
use crate::nearest::nearest;

/// A policy that a real system ships.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name, unique.
    pub id: &'static str,
    /// Other names it goes by.
    pub aliases: &'static [&'static str],
    /// The part of the list that it stands in.
    pub group: Group,
    /// The system.
    pub system: &'static str,
    /// The version that was read.
    pub version: &'static str,
    /// The file in the system's repository.
    pub source: &'static str,
    policy: fn() -> Policy,
}

/// A part of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Job queues that store their jobs.
    Queues,
    /// Brokers, workflow engines, message frameworks.
    Workflows,
    /// Clients of one service, and HTTP clients.
    Sdks,
    /// Proxies, clusters, brokers' clients.
    Infrastructure,
    /// Libraries that retry anything, and articles.
    Libraries,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Group::Queues => "Job queues",
            Group::Workflows => "Brokers and workflow engines",
            Group::Sdks => "Clients of services",
            Group::Infrastructure => "Proxies, clusters and brokers' clients",
            Group::Libraries => "Retry libraries and articles",
        })
    }
}

impl Preset {
    /// The policy.
    pub fn policy(&self) -> Policy {
        (self.policy)()
    }

    /// The retries it allows; `None` for no limit, and where its user has to choose one.
    pub fn retries(&self) -> Option<u32> {
        self.policy().max_retries.filter(|retries| *retries != u32::MAX)
    }
}

/// Every preset, in groups.
pub fn all() -> impl Iterator<Item = &'static Preset> {
    [queues::PRESETS, workflows::PRESETS, sdks::PRESETS, infrastructure::PRESETS, libraries::PRESETS].into_iter().flatten()
}

/// The preset of this name; capitals do not matter.
pub fn find(name: &str) -> Option<&'static Preset> {
    let is = |id: &str| id.eq_ignore_ascii_case(name.trim());
    all().find(|preset| is(preset.id)).or_else(|| all().find(|preset| preset.aliases.iter().any(|alias| is(alias))))
}

/// The preset that a name was probably meant for: the nearest, or the first that begins with it.
pub fn meant(name: &str) -> Option<&'static str> {
    let ids: Vec<&str> = all().flat_map(|preset| preset.aliases.iter().copied().chain([preset.id])).collect();
    let lower = name.to_lowercase();
    let begins = || ids.iter().copied().find(|id| !lower.is_empty() && id.to_lowercase().starts_with(&lower));
    let head = || ids.iter().copied().find(|id| nearest(name, &[id.split(['.', '(']).next().unwrap_or(id)]).is_some());
    nearest(name, &ids).or_else(begins).or_else(head)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
