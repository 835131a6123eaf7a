//! What happens in a run or does not: there is no half of it, and so no mean and no median, but a share of runs.

use super::Summary;

/// Something that happens in a run or does not.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence {
    /// Its name in files.
    pub name: &'static str,
    /// What happens, in one sentence.
    pub doc: &'static str,
    read: fn(&Summary) -> Option<bool>,
}

impl Occurrence {
    /// Whether it happened; `None` where it can't.
    pub fn happened(&self, summary: &Summary) -> Option<bool> {
        (self.read)(summary)
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Occurrence> {
        OCCURRENCES.iter().find(|occurrence| occurrence.name == name)
    }
}

/// Everything that happens or does not.
pub const OCCURRENCES: &[Occurrence] = &[
    Occurrence { name: "lost_jobs", doc: "a job was lost that could have succeeded", read: |s| Some(s.counts.lost() > 0) },
    Occurrence {
        name: "collapse",
        doc: "the downstream did not recover by itself after the last outage",
        read: |s| s.aftermath.map(|after| !after.recovered),
    },
    Occurrence {
        name: "metastable",
        doc: "the retries alone kept the downstream down after the last outage",
        read: |s| s.aftermath.map(|after| after.metastable),
    },
    Occurrence {
        name: "horizon_reached",
        doc: "the horizon came before every job had ended",
        read: |s| Some(s.counts.unfinished > 0),
    },
];
