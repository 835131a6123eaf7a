//! How fast the real parts are: what the simulator must be told of a machine before it can predict a run there.
//!
//! A machine is a number of processors that everything shares, and for each thing that is done the processor time it takes and the
//! time that it waits for something else. Contention is not an input: it comes out, when more is asked for than the processors can do.
//!
//! ```text
//!  claim    claim.work ──► its effect ──► claim.work_per_job × new jobs + claim.work_per_retry × retries, claim.wait ──► the answer
//!  settle   settle.work + …_per_job × jobs that end + …_per_retry × jobs that are retried ──► its effect ──► settle.wait ──► the answer
//!  call     half of call.work, half of call.wait ──► the downstream's model ──► the other halves ──► the reply
//!  timer    rounded up to timer.grain, then timer.late
//! ```
//! `simq calibrate` measures it. [`Profile::built_in`] is one machine's, for when nobody has.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dist::Dist;

/// How fast the real parts of one machine are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Raised when an older file could be misread.
    pub version: u32,
    /// What was measured, and when.
    pub about: String,
    /// Processors that workers, downstream and database share, at least 1.
    pub processors: u32,
    /// How long the database is away when it is restarted, in microseconds. Not measured by `simq calibrate`.
    #[serde(default = "restart_us")]
    pub restart_us: f64,
    /// Taking jobs.
    pub claim: Cost,
    /// Settling them.
    pub settle: Cost,
    /// Extending leases, and reaping them.
    pub other: Cost,
    /// Putting jobs in.
    pub insert: Cost,
    /// A call of the downstream, there and back, without the downstream's own work.
    pub call: Cost,
    /// Timers.
    pub timer: Timer,
}

/// What the throwaway server takes to stop and to start again on a small machine.
pub(crate) fn restart_us() -> f64 {
    300_000.0
}

/// What one thing costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Processor time of each, in microseconds, of all processes that have a part in it.
    pub work_us: f64,
    /// Processor time for each job in it, in microseconds: of a claim each new job, of a settlement each job that ends.
    #[serde(default)]
    pub work_per_job_us: f64,
    /// Processor time for each retry in it, in microseconds: claimed once more, or put off.
    #[serde(default)]
    pub work_per_retry_us: f64,
    /// Time beside that, when nothing else is going on, in microseconds: the median of a log-normal distribution.
    #[serde(default)]
    pub wait_us: f64,
    /// Its 99th percentile, not below the median.
    #[serde(default)]
    pub wait_p99_us: f64,
}

/// How timers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timer {
    /// Due times are rounded up to multiples of this, in microseconds.
    pub grain_us: f64,
    /// How much later they run, in microseconds: the median of a log-normal distribution.
    pub late_us: f64,
    /// Its 99th percentile, not below the median.
    pub late_p99_us: f64,
}

/// Why a profile can't be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The text is not a profile.
    #[error("{0}")]
    Syntax(String),
    /// Another version of simq wrote it.
    #[error("it is of version {found}, and this simq reads version {VERSION}: write a new one with `simq calibrate`")]
    Version {
        /// The file's.
        found: u32,
    },
    /// A figure makes no sense.
    #[error("`{key}` is {value}: it must be {must}")]
    Figure {
        /// Which.
        key: String,
        /// What it is.
        value: String,
        /// What it should be.
        must: &'static str,
    },
}

const VERSION: u32 = Profile::VERSION;

impl Profile {
    /// The version of the file.
    pub const VERSION: u32 = 1;

    /// A machine that takes no time at all: what the policies, the workers and the downstream do by themselves.
    pub fn ideal() -> Profile {
        Profile {
            version: VERSION,
            about: "an ideal machine: store, network and timers take no time".to_owned(),
            processors: 1,
            restart_us: 0.0,
            claim: Cost::default(),
            settle: Cost::default(),
            other: Cost::default(),
            insert: Cost::default(),
            call: Cost::default(),
            timer: Timer::default(),
        }
    }

    /// What `simq calibrate` measured on a small machine: two shared processors, PostgreSQL 15 without fsync.
    pub fn built_in() -> Profile {
        Profile::parse(include_str!("built_in_profile.toml")).expect("the built-in profile is checked by a test")
    }

    /// How long the database is away when it is restarted.
    pub fn restart(&self) -> Duration {
        micros(self.restart_us)
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// If it is not one, or one of another version, or a figure in it makes no sense.
    pub fn parse(text: &str) -> Result<Profile, Error> {
        let syntax = |error: toml::de::Error| Error::Syntax(error.to_string().trim_end().to_owned());
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let head: Head = toml::from_str(text).map_err(syntax)?;
        if head.version != VERSION {
            return Err(Error::Version { found: head.version });
        }
        let profile: Profile = toml::from_str(text).map_err(syntax)?;
        profile.check()?;
        Ok(profile)
    }

    /// The text of its file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a profile is plain data")
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |key: &str, value: String, must| Err(Error::Figure { key: key.to_owned(), value, must });
        if self.processors == 0 || self.processors > 65_536 {
            return wrong("processors", self.processors.to_string(), "from 1 to 65536");
        }
        let costs =
            [("claim", self.claim), ("settle", self.settle), ("other", self.other), ("insert", self.insert), ("call", self.call)];
        let of_costs = costs.iter().flat_map(|(name, cost)| {
            [
                (format!("{name}.work_us"), cost.work_us),
                (format!("{name}.work_per_job_us"), cost.work_per_job_us),
                (format!("{name}.work_per_retry_us"), cost.work_per_retry_us),
                (format!("{name}.wait_us"), cost.wait_us),
                (format!("{name}.wait_p99_us"), cost.wait_p99_us),
            ]
        });
        let timer = self.timer;
        let of_timer = [("grain_us", timer.grain_us), ("late_us", timer.late_us), ("late_p99_us", timer.late_p99_us)];
        let of_restart = [("restart_us".to_owned(), self.restart_us)];
        for (key, value) in of_costs.chain(of_restart).chain(of_timer.map(|(name, value)| (format!("timer.{name}"), value))) {
            if !(0.0..=1e9).contains(&value) {
                return wrong(&key, value.to_string(), "from 0 to 1000000000 microseconds");
            }
        }
        for (name, median, p99) in costs
            .iter()
            .map(|(name, cost)| (format!("{name}.wait_p99_us"), cost.wait_us, cost.wait_p99_us))
            .chain([("timer.late_p99_us".to_owned(), timer.late_us, timer.late_p99_us)])
        {
            if p99 < median {
                return wrong(&name, p99.to_string(), "not below its median");
            }
        }
        Ok(())
    }
}

impl Cost {
    /// Processor time of one, whatever is in it.
    pub fn work(&self) -> Duration {
        micros(self.work_us)
    }

    /// Processor time for what is in it.
    pub fn more(&self, jobs: usize, retries: usize) -> Duration {
        micros(self.work_per_job_us * jobs as f64 + self.work_per_retry_us * retries as f64)
    }

    /// The time beside that.
    pub fn wait(&self) -> Dist {
        spread(self.wait_us, self.wait_p99_us)
    }
}

impl Timer {
    /// The grain.
    pub fn grain(&self) -> Duration {
        micros(self.grain_us)
    }

    /// How much later than its rounded time a timer runs.
    pub fn late(&self) -> Dist {
        spread(self.late_us, self.late_p99_us)
    }
}

/// Microseconds as a duration.
fn micros(us: f64) -> Duration {
    crate::time::seconds(us / 1e6)
}

fn spread(median: f64, p99: f64) -> Dist {
    if median <= 0.0 || p99 <= median {
        Dist::Constant { value: micros(median) }
    } else {
        Dist::LogNormal { median: micros(median), p99: micros(p99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_survives_its_file() {
        for profile in [Profile::ideal(), Profile::built_in()] {
            assert_eq!(Profile::parse(&profile.to_toml()), Ok(profile));
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let with = |from: &str, to: &str| {
            let text = Profile::ideal().to_toml();
            assert!(text.contains(from), "{text}");
            Profile::parse(&text.replacen(from, to, 1)).expect_err("it is wrong").to_string()
        };
        assert_eq!(
            with("version = 1", "version = 7"),
            "it is of version 7, and this simq reads version 1: write a new one with `simq calibrate`"
        );
        assert_eq!(with("processors = 1", "processors = 0"), "`processors` is 0: it must be from 1 to 65536");
        assert!(with("work_us = 0.0", "work_us = -1.0").starts_with("`claim.work_us` is -1: "));
        assert!(with("late_p99_us = 0.0", "late_p99_us = nan").starts_with("`timer.late_p99_us` is NaN: "));
        assert!(with("late_us = 0.0", "late_us = 3.0").starts_with("`timer.late_p99_us` is 0: it must be not below"));
        assert!(with("processors = 1", "processers = 1").contains("processers"));
    }
}
