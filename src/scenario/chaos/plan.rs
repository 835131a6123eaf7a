//! What befalls the machinery, and [`plan`]: when what befalls whom.
//!
//! It is a function of the entries, the number of workers and the seed, so that every policy meets the same blows, whatever carries them
//! out, and however.
//!
//! Workers are struck by their place in the crew, from 0. A place outlives who stands in it: a worker that was killed and comes back is
//! a new process, which knows nothing of the old one's claims.

use std::time::Duration;

use serde::Serialize;

use crate::job::JobId;
use crate::rng::{Seed, Stream};
use crate::time::Instant;

/// An entry of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chaos {
    /// When, from the run's start.
    pub at: Duration,
    /// It comes again each time so much has passed, to the end of the run; `None`: once.
    pub every: Option<Duration>,
    /// What happens.
    #[serde(flatten)]
    pub what: What,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum What {
    /// Workers die, as by `kill -9`: what they had under way is never settled, and their leases run out.
    KillWorkers {
        /// Of how many.
        share: Crowd,
        /// How long their places stay empty; `None`: for good.
        lasts: Option<Duration>,
    },
    /// Workers stand still, as by `kill -STOP`: their clocks go on, and so do their leases.
    PauseWorkers {
        /// How many.
        share: Crowd,
        /// How long.
        lasts: Duration,
    },
    /// All of simq's own connections to the database are cut, by the server.
    CutConnections,
    /// The database is stopped and started again; only simq's own throwaway one.
    RestartDatabase {
        /// How it is stopped.
        mode: Restart,
    },
    /// Somebody holds a transaction with a snapshot open, so that no dead row can be removed.
    HoldTransaction {
        /// How long.
        lasts: Duration,
    },
    /// Workers end in order, and are followed by others whose clocks are wrong. It must change nothing, since only durations reach the
    /// store. They share no budget, breaker or rate: "open until" means nothing between two clocks.
    SkewClock {
        /// How many.
        share: Crowd,
        /// By how much.
        by: Skew,
    },
}

/// How many workers are struck.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Crowd {
    /// One.
    One,
    /// This share of all, at least one; above 0, up to 1.
    Share(f64),
}

/// How a database server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// In order: transactions are rolled back, and a checkpoint is written.
    Fast,
    /// At once: it recovers from its log when it starts.
    Immediate,
    /// Not asked at all: SIGKILL.
    Kill,
}

/// How a clock is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skew {
    /// It shows a later time than it is.
    Ahead(Duration),
    /// It shows an earlier one.
    Behind(Duration),
}

/// One blow of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Strike {
    /// When.
    pub at: Instant,
    /// What happens.
    pub what: What,
    /// The places of the workers that it hits, ascending; none if it does not hit workers.
    pub places: Vec<u32>,
}

/// Added to every wrong clock, so that one that is behind has a past to show; longer than any skew.
const PAST: Duration = Duration::from_secs(2 * 366 * 86_400);

impl Skew {
    /// How far such a clock is ahead of the run's, which begins at zero: one that is behind shows a late hour of an earlier day.
    pub fn ahead(self) -> Duration {
        match self {
            Skew::Ahead(by) => PAST.saturating_add(by),
            Skew::Behind(by) => PAST.saturating_sub(by),
        }
    }
}

impl What {
    /// The word for it in files.
    pub fn name(&self) -> &'static str {
        match self {
            What::KillWorkers { .. } => "kill-workers",
            What::PauseWorkers { .. } => "pause-workers",
            What::CutConnections => "cut-connections",
            What::RestartDatabase { .. } => "restart-database",
            What::HoldTransaction { .. } => "hold-transaction",
            What::SkewClock { .. } => "skew-clock",
        }
    }

    /// The shortest word for it, for charts.
    pub fn short(&self) -> &'static str {
        match self {
            What::KillWorkers { .. } => "kill",
            What::PauseWorkers { .. } => "pause",
            What::CutConnections => "cut",
            What::RestartDatabase { .. } => "restart",
            What::HoldTransaction { .. } => "held snapshot",
            What::SkewClock { .. } => "skew",
        }
    }

    /// How long it lasts, as planned; `None`: a moment, or for good.
    pub fn lasts(&self) -> Option<Duration> {
        match self {
            What::KillWorkers { lasts, .. } => *lasts,
            What::PauseWorkers { lasts, .. } | What::HoldTransaction { lasts } => Some(*lasts),
            What::CutConnections | What::RestartDatabase { .. } | What::SkewClock { .. } => None,
        }
    }

    /// How many workers it strikes, of whom there are so many.
    pub fn struck(&self, workers: u32) -> u32 {
        match self {
            What::KillWorkers { share, .. } | What::PauseWorkers { share, .. } | What::SkewClock { share, .. } => {
                share.of(workers)
            }
            What::CutConnections | What::RestartDatabase { .. } | What::HoldTransaction { .. } => 0,
        }
    }
}

impl Crowd {
    fn of(self, workers: u32) -> u32 {
        match self {
            Crowd::One => 1.min(workers),
            Crowd::Share(share) => ((share * f64::from(workers)).round() as u32).clamp(1.min(workers), workers),
        }
    }
}

impl Chaos {
    /// How often it comes before `horizon`.
    pub fn turns(&self, horizon: Duration) -> u64 {
        let Some(room) = horizon.checked_sub(self.at).filter(|room| !room.is_zero()) else { return 0 };
        match self.every {
            None => 1,
            Some(every) => u64::try_from((room.as_nanos() - 1) / every.as_nanos().max(1)).unwrap_or(u64::MAX).saturating_add(1),
        }
    }
}

/// Every blow up to the horizon, in order of time, and of the file where they come at once. Whom one hits is drawn by its entry, its turn and
/// the worker's place, and by nothing else.
pub fn plan(entries: &[Chaos], workers: u32, horizon: Duration, seed: Seed) -> Vec<Strike> {
    let mut strikes = Vec::new();
    for (entry, chaos) in (0_u64..).zip(entries) {
        for turn in 0..chaos.turns(horizon) {
            let wait = chaos.every.unwrap_or_default().saturating_mul(u32::try_from(turn).unwrap_or(u32::MAX));
            let places = places(chaos.what.struck(workers), workers, seed, JobId(entry << 32 | turn));
            strikes.push(Strike { at: Instant::START + chaos.at + wait, what: chaos.what, places });
        }
    }
    strikes.sort_by_key(|strike| strike.at);
    strikes
}

/// So many of the places, each as likely as any other.
fn places(struck: u32, workers: u32, seed: Seed, key: JobId) -> Vec<u32> {
    let mut drawn: Vec<(f64, u32)> = (0..workers).map(|place| (seed.draw(Stream::Chaos, key, place).unit(), place)).collect();
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut places: Vec<u32> = drawn.into_iter().take(struck as usize).map(|(_, place)| place).collect();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn kill(share: Crowd, every: Option<Duration>) -> Chaos {
        Chaos { at: SECOND, every, what: What::KillWorkers { share, lasts: Some(SECOND) } }
    }

    fn hit(seed: u64) -> Vec<Vec<u32>> {
        let entries = [kill(Crowd::Share(0.5), Some(2 * SECOND)), kill(Crowd::One, None)];
        plan(&entries, 8, 10 * SECOND, Seed(seed)).into_iter().map(|strike| strike.places).collect()
    }

    #[test]
    fn the_seed_decides_who_is_hit() {
        assert_eq!(hit(1), hit(1));
        assert_ne!(hit(1), hit(2));
        let sizes: Vec<usize> = hit(1).iter().map(Vec::len).collect();
        assert_eq!(sizes, [4, 1, 4, 4, 4, 4], "five turns of half of the eight, and one of one, in order of time");
    }

    #[test]
    fn turns_of_one_entry_hit_different_workers_and_each_is_hit_at_times() {
        let mut often = [0; 8];
        let entry = kill(Crowd::Share(0.25), Some(SECOND / 100));
        let strikes = plan(&[entry], 8, 10 * SECOND, Seed(7));
        assert_eq!(strikes.len(), 900);
        strikes.iter().flat_map(|strike| &strike.places).for_each(|place| often[*place as usize] += 1);
        assert!(often.iter().all(|times| (150..300).contains(times)), "each of eight in a quarter of 900: {often:?}");
    }

    #[test]
    fn a_share_is_at_least_one_worker_and_at_most_all() {
        let of = |share: f64, workers| Crowd::Share(share).of(workers);
        assert_eq!([of(0.01, 4), of(0.5, 4), of(0.5, 5), of(1.0, 4), of(0.5, 1), of(0.5, 0)], [1, 2, 3, 4, 1, 0]);
    }

    #[test]
    fn nothing_comes_at_the_horizon_or_after_it() {
        let turns =
            |at, every: Option<u64>| Chaos { at: at * SECOND, every: every.map(|s| SECOND * s as u32), ..kill(Crowd::One, None) };
        let count = |chaos: Chaos| chaos.turns(10 * SECOND);
        assert_eq!(
            [count(turns(10, None)), count(turns(9, None)), count(turns(0, Some(5))), count(turns(1, Some(3)))],
            [0, 1, 2, 3]
        );
    }
}
