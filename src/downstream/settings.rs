//! What the downstream is like: its capacity, its users and its outages.

use std::time::Duration;

use serde::Serialize;

use super::{Collapse, Outage};
use crate::dist::Dist;
use crate::time::Instant;

/// What the downstream is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Calls it works on at once, at least 1.
    pub servers: u32,
    /// Calls that may wait for a server; the next one is answered 503.
    pub queue: u32,
    /// Who of those that wait is served first.
    pub discipline: Discipline,
    /// A call that would wait for longer, or has, is answered 503; `None`: none is.
    pub shed_after: Option<Duration>,
    /// How long a server works on a call.
    pub latency: Dist,
    /// Share of calls that fail with 500 although nothing is wrong, 0 to 1.
    pub error_rate: f64,
    /// How long a caller waits for an answer. The downstream itself does not know it.
    pub client_timeout: Duration,
    /// How its capacity falls under load; `None`: it does not.
    pub collapse: Option<Collapse>,
    /// The ordinary users that call it besides the jobs.
    pub users: Option<Users>,
    /// When it is down, and how; in order of time.
    pub outages: Vec<Outage>,
}

/// Who of those that wait is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discipline {
    /// The oldest.
    #[default]
    Fifo,
    /// The newest. A full queue turns away the oldest.
    Lifo,
}

/// Ordinary users: an open-loop load that does not retry, on the same downstream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Users {
    /// Calls per second, as a Poisson process from the start of the run to its end.
    pub rate: f64,
    /// How long a user waits for an answer.
    pub timeout: Duration,
    /// What they call, as a job type.
    pub route: String,
}

impl Default for Settings {
    /// One server that takes no time, and is well.
    fn default() -> Settings {
        Settings {
            servers: 1,
            queue: 100,
            discipline: Discipline::Fifo,
            shed_after: None,
            latency: Dist::Constant { value: Duration::ZERO },
            error_rate: 0.0,
            client_timeout: Duration::from_secs(2),
            collapse: None,
            users: None,
            outages: Vec::new(),
        }
    }
}

impl Settings {
    /// Calls it can complete in a second when all is well: servers over mean latency.
    pub fn capacity(&self) -> f64 {
        f64::from(self.servers) / self.latency.mean().as_secs_f64().max(1e-9)
    }

    /// Every turn of every outage up to `end`, in order of time, each as an outage of its own: what charts and figures go by.
    /// Faults that are the request's are none.
    pub fn spells(&self, end: Duration) -> Vec<Outage> {
        let end = Instant::START + end;
        let of = |outage: &Outage| {
            let outage = Outage { every: None, ..outage.clone() };
            move |window| Outage { window, ..outage.clone() }
        };
        let outages = self.outages.iter().filter(|outage| outage.mode.is_outage());
        let mut spells: Vec<Outage> = outages.flat_map(|outage| outage.turns(end).map(of(outage))).collect();
        spells.sort_by_key(|spell| spell.window.from);
        spells
    }
}
