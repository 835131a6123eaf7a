//! What chaos cost, blow by blow: sentences, tables and JSON. Only where there was any.

use std::path::Path;

use serde_json::{Value, json};

use super::across::Runs;
use super::csv::{seconds_of, table};
use super::figure::{many, seconds};
use crate::metrics::{Blow, Cause, Cost, Target, costs, repeats};
use crate::report::{Comparison, Error, Run};

/// Blows that a sentence names one by one; of more it says the sum.
const NAMED: usize = 8;

/// A sentence per policy, of its first repetition.
pub(super) fn sentences(policies: &[Runs<'_>]) -> Vec<String> {
    policies.iter().filter(|runs| !runs.first().record.blows.is_empty()).map(|runs| sentence(runs.policy, runs.first())).collect()
}

fn sentence(policy: &str, run: &Run) -> String {
    let (blows, costs) = (&run.record.blows, costs(&run.record));
    if blows.len() <= NAMED {
        let each: Vec<String> = blows.iter().zip(&costs).map(|(blow, cost)| told(blow, *cost)).collect();
        return format!("Chaos under `{policy}`: {}.", each.join("; "));
    }
    let sum = |of: fn(&Cost) -> u64| costs.iter().map(of).sum::<u64>();
    let all = Cost {
        lost_leases: sum(|cost| cost.lost_leases),
        repeats: sum(|cost| cost.repeats),
        store_failures: sum(|cost| cost.store_failures),
        stalled: costs.iter().map(|cost| cost.stalled).max().unwrap_or_default(),
    };
    format!("Chaos under `{policy}` struck {}: {}.", many(blows.len() as f64, "time"), price(all))
}

fn told(blow: &Blow, cost: Cost) -> String {
    let at = seconds(blow.at.as_secs_f64());
    if let Some(why) = &blow.failed {
        return format!("{} at {at} did not come to pass ({why})", blow.what);
    }
    let whom = match blow.target {
        Target::Lives | Target::Pace => format!(" hit {}", many(blow.hit as f64, "worker")),
        Target::Database if blow.what == "cut-connections" => format!(" hit {}", many(blow.hit as f64, "connection")),
        Target::Database => {
            blow.until.map_or(String::new(), |until| format!(" took {}", seconds(until.since(blow.at).as_secs_f64())))
        }
        Target::Nobody => String::new(),
    };
    format!("{} at {at}{whom} and cost {}", blow.what, price(cost))
}

/// What was lost, and for how long nothing went on.
fn price(cost: Cost) -> String {
    let counts = [(cost.lost_leases, "lease"), (cost.repeats, "repeated call"), (cost.store_failures, "failed operation")];
    let mut parts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| many(*n as f64, noun)).collect();
    let stalled = cost.stalled.as_secs_f64();
    if stalled >= 0.1 {
        parts.push(format!("{} without a settlement", seconds(stalled)));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// Whether there is anything to tell.
pub(super) fn applies(comparison: &Comparison) -> bool {
    comparison.runs.iter().any(|run| !run.record.blows.is_empty())
}

/// One row per blow.
pub(super) fn blows(comparison: &Comparison, path: &Path) -> Result<(), Error> {
    table(path, |out| {
        out.write_record([
            "policy",
            "repetition",
            "what",
            "at_s",
            "until_s",
            "hit",
            "workers",
            "lost_leases",
            "repeated_calls",
            "store_failures",
            "stalled_s",
            "failed",
        ])?;
        for run in &comparison.runs {
            for (blow, cost) in run.record.blows.iter().zip(costs(&run.record)) {
                let workers: Vec<String> = blow.workers.iter().map(u32::to_string).collect();
                out.serialize((
                    (&run.policy, run.repetition, blow.what, seconds_of(Some(blow.at)), seconds_of(blow.until)),
                    (blow.hit, workers.join(" "), cost.lost_leases, cost.repeats, cost.store_failures),
                    (cost.stalled.as_secs_f64(), blow.failed.as_deref().unwrap_or_default()),
                ))?;
            }
        }
        Ok(())
    })
}

/// One row per call that was made again: the first one, and why it was in vain.
pub(super) fn again(comparison: &Comparison, path: &Path) -> Result<(), Error> {
    table(path, |out| {
        out.write_record(["policy", "repetition", "job", "attempt", "worker", "sent_s", "cause", "blow"])?;
        for run in &comparison.runs {
            for repeat in repeats(&run.record) {
                let blow = repeat.blow.map_or("", |blow| run.record.blows[blow].what);
                out.serialize((
                    (&run.policy, run.repetition, repeat.job.0, repeat.attempt, repeat.worker),
                    (seconds_of(Some(repeat.sent)), repeat.cause.name(), blow),
                ))?;
            }
        }
        Ok(())
    })
}

/// The blows of a run, and its repeats by cause.
pub(super) fn json(run: &Run) -> Value {
    let blow = |(blow, cost): (&Blow, Cost)| {
        json!({
            "what": blow.what,
            "at_s": blow.at.as_secs_f64(),
            "until_s": blow.until.map(|until| until.as_secs_f64()),
            "hit": blow.hit,
            "workers": blow.workers,
            "failed": blow.failed,
            "cost": {
                "lost_leases": cost.lost_leases,
                "repeated_calls": cost.repeats,
                "store_failures": cost.store_failures,
                "stalled_s": cost.stalled.as_secs_f64(),
            },
        })
    };
    let blows: Vec<Value> = run.record.blows.iter().zip(costs(&run.record)).map(blow).collect();
    let repeats = repeats(&run.record);
    let by = |cause: Cause| repeats.iter().filter(|repeat| repeat.cause == cause).count();
    let causes = [Cause::Killed, Cause::Paused, Cause::Database, Cause::Expired];
    let causes: serde_json::Map<String, Value> =
        causes.into_iter().map(|cause| (cause.name().to_owned(), by(cause).into())).collect();
    json!({ "blows": blows, "repeated_calls_by_cause": causes })
}
