//! Which real figures are held against a baseline, and how much each may change.
//!
//! Few, since each further comparison raises the bar for all (Holm), and those that a change of policy or engine moves: how much is sent, how
//! hard the recovery is hit, how long it takes, what the database takes. A tolerance is a share of the baseline's median, chosen well above what
//! two runs of the same code differ by on a quiet machine.

use crate::metrics::{METRICS, Metric};

/// A figure to compare.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Which.
    pub metric: &'static Metric,
    /// How much it may differ, as a share of the baseline's median.
    pub tolerance: f64,
}

/// The figures that are compared unless others are asked for, with their tolerances.
pub const WATCHED: [(&str, f64); 6] = [
    ("lost", 0.05),
    ("amplification", 0.10),
    ("recovery_peak", 0.25),
    ("completion_p99_s", 0.10),
    ("claim_ms_p50", 0.25),
    ("settle_ms_p50", 0.25),
];

/// What a figure that is asked for by name may differ by, if nothing is said.
const TOLERANCE: f64 = 0.10;

/// The figures to compare, from words such as `makespan_s` or `makespan_s=0.2`; the usual ones if there are none.
///
/// # Errors
/// A sentence on the first word that is no figure, or whose tolerance is none.
pub fn watched(words: &[String]) -> Result<Vec<Watched>, String> {
    if words.is_empty() {
        let usual =
            WATCHED.iter().filter_map(|(name, tolerance)| Some(Watched { metric: Metric::named(name)?, tolerance: *tolerance }));
        return Ok(usual.collect());
    }
    words.iter().map(|word| watch(word)).collect()
}

fn watch(word: &str) -> Result<Watched, String> {
    let (name, tolerance) = word.split_once('=').map_or((word, None), |(name, tolerance)| (name, Some(tolerance)));
    let Some(metric) = Metric::named(name) else {
        let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let near = crate::nearest::nearest(name, &names).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("there is no figure `{name}`{near}"));
    };
    let usual = WATCHED.iter().find(|(known, _)| *known == name).map_or(TOLERANCE, |(_, tolerance)| *tolerance);
    let tolerance =
        match tolerance {
            None => usual,
            Some(text) => text.parse().ok().filter(|tolerance: &f64| (0.0..=10.0).contains(tolerance)).ok_or_else(|| {
                format!("the tolerance of `{name}` is `{text}`: write a share from 0 to 10, such as {name}=0.1")
            })?,
        };
    Ok(Watched { metric, tolerance })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_figures_exist_and_words_override_them() {
        assert_eq!(watched(&[]).map(|watched| watched.len()), Ok(WATCHED.len()));
        let words = ["lost".to_owned(), "makespan_s=0.3".to_owned()];
        let tolerances = watched(&words).map(|watched| watched.iter().map(|one| one.tolerance).collect::<Vec<f64>>());
        assert_eq!(tolerances, Ok(vec![0.05, 0.3]));
        for word in ["lots", "lost=x", "lost=-1"] {
            assert!(watched(&[word.to_owned()]).is_err(), "{word}");
        }
    }
}
