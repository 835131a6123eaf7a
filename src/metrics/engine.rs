//! Figures of the engine beside a raw limit of the same server, for assertions that hold on any machine.
//!
//! They come from a probe that does a thing through the engine and the like of it by hand, in turns, within one run: what else
//! the machine does meanwhile befalls both, and their ratio says something of the code.

/// One ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineMetric {
    /// Its name in files.
    pub name: &'static str,
    /// What it means, in one sentence.
    pub doc: &'static str,
}

/// Every ratio that the probe gives, lower being better.
pub const ENGINE_METRICS: &[EngineMetric] = &[
    EngineMetric { name: "engine_claim_over_raw", doc: "the time of a claim over that of one statement by hand" },
    EngineMetric { name: "engine_settle_over_raw", doc: "the time of a settlement over that of one statement by hand" },
];

impl EngineMetric {
    /// The ratio of this name.
    pub fn named(name: &str) -> Option<&'static EngineMetric> {
        ENGINE_METRICS.iter().find(|metric| metric.name == name)
    }
}
