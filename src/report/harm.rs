//! What retries did to the downstream and to its ordinary users, in sentences: only where there is something to say.

use super::across::Runs;
use super::figure::{list, percent, seconds};
use crate::metrics::{Aftermath, Metric, Occurrence};

/// Whether the downstream recovered by itself once the outage was over; nothing, if it did under every policy.
pub(super) fn aftermaths(policies: &[Runs<'_>]) -> Vec<String> {
    let mut said: Vec<String> = policies.iter().filter_map(stuck).collect();
    if !said.is_empty() {
        // One that loses jobs is not praised for what else it does.
        let free: Vec<&Runs<'_>> = policies.iter().filter(|runs| is_free(runs) && !runs.loses()).collect();
        said.extend(escape(&free));
    }
    said
}

fn stuck(runs: &Runs<'_>) -> Option<String> {
    let all = runs.runs.iter().filter_map(|run| run.summary.aftermath);
    let mut stuck: Vec<Aftermath> = all.filter(|after| after.metastable).collect();
    stuck.sort_by_key(|after| after.down_for);
    let after = stuck.get(stuck.len().saturating_sub(1) / 2)?;
    let (ended, lasted) = (seconds(after.outage_ended.as_secs_f64()), seconds(after.down_for.as_secs_f64()));
    let what = if after.recovered {
        format!("took {lasted} more to recover by itself")
    } else if after.load_ended {
        format!("never recovered by itself, but only when jobs stopped coming, {lasted} later")
    } else {
        format!("never recovered by itself in the {lasted} that followed")
    };
    let share = Occurrence::named("metastable").filter(|_| runs.is_repeated()).and_then(|stuck| runs.share(stuck));
    let of = share.map_or_else(String::new, |share| format!(", {},", share.text()));
    // Retries that are turned away at once waste no work, and can keep a service down all the same.
    let work = match after.wasted_work.filter(|share| *share >= 0.005) {
        Some(share) => format!(": {} of its work was for callers that had already given up", percent(share)),
        None => ": each wave of retries overran it again".to_owned(),
    };
    Some(format!("The outage ended at {ended}; under `{}`{of} the downstream {what}{work}.", runs.policy))
}

fn is_free(runs: &Runs<'_>) -> bool {
    let mut all = runs.runs.iter().map(|run| run.summary.aftermath);
    all.all(|after| after.is_some_and(|after| after.recovered && !after.metastable))
}

fn escape(free: &[&Runs<'_>]) -> Option<String> {
    let each: Vec<String> = free
        .iter()
        .filter_map(|runs| {
            let down_after = Metric::named("down_after_s")?;
            let down_for = runs.spread(|summary| down_after.value(summary)).median?;
            let when = if down_for == 0.0 { "at once".to_owned() } else { format!("after {}", seconds(down_for)) };
            Some(format!("under `{}` {when}", runs.policy))
        })
        .collect();
    (!each.is_empty()).then(|| format!("It was well again {}.", list(&each)))
}

/// What ordinary users saw after the outage, and before it.
pub(super) fn users(policies: &[Runs<'_>]) -> Option<String> {
    let median = |runs: &Runs<'_>, name: &str| {
        let metric = Metric::named(name)?;
        runs.spread(|summary| metric.value(summary)).median
    };
    let (failed, when) = match policies.iter().any(|runs| median(runs, "user_failed_after").is_some()) {
        true => ("user_failed_after", "after the outage "),
        false => ("user_failed", ""),
    };
    let each: Vec<String> =
        policies.iter().filter_map(|runs| Some(format!("{} under `{}`", percent(median(runs, failed)?), runs.policy))).collect();
    if each.is_empty() {
        return None;
    }
    let before = policies.iter().find_map(|runs| median(runs, "user_failed_before"));
    let before = before.filter(|_| !when.is_empty()).map(|share| format!(" ({} before it)", percent(share))).unwrap_or_default();
    Some(format!("Of the ordinary users' calls {when}{} failed{before}.", list(&each)))
}
