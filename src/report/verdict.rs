//! What the numbers say, in a few plain sentences.
//!
//! Every sentence is read off figures. Lost jobs come first, and a policy that lost any appears in no other praise: its peak
//! and its speed are compared with nobody's. Where repetitions differ the median is said, and two policies are only ranked if the
//! intervals of their medians do not overlap. What happens or does not is said as a share of the repetitions, with its interval.

use std::time::Duration;

use super::across::{Runs, Spread, policies};
use super::figure::{chosen, count, list, many, ratio, seconds};
use super::{harm, toll};
use crate::job::{State, Why};
use crate::metrics::{Limit, Metric, Occurrence};
use crate::report::{Comparison, Run};
use crate::time::Instant;

/// Figures closer than this are called alike.
const ALIKE: f64 = 1.1;

/// The sentences, most important first; at least one.
pub fn verdict(comparison: &Comparison) -> Vec<String> {
    let policies = policies(comparison);
    if policies.is_empty() {
        return vec!["Nothing was run, so there is nothing to say.".to_owned()];
    }
    let mut said = Vec::new();
    if comparison.partial {
        said.push("Interrupted: these figures cover a part of the runs only.".to_owned());
    }
    said.extend(losses(comparison, &policies));
    said.extend(harm::aftermaths(&policies));
    said.extend(harm::users(&policies));
    said.extend(doomed(&policies));
    said.extend(toll::sentences(&policies));
    said.extend(limits(&policies));
    let whole = |runs: &&Runs<'_>| !runs.loses() && runs.runs.iter().all(|run| !run.partial);
    let safe: Vec<&Runs<'_>> = policies.iter().filter(whole).collect();
    if safe.is_empty() && policies.len() > 1 {
        said.push("No policy kept every job to the end, so their peaks and times are not ranked.".to_owned());
    }
    said.extend(peaks(comparison, &safe));
    said.extend(pace(&safe));
    said
}

/// Who lost how many jobs, the worst in detail.
fn losses(comparison: &Comparison, policies: &[Runs<'_>]) -> Vec<String> {
    let mut losers: Vec<&Runs<'_>> = policies.iter().filter(|runs| runs.loses()).collect();
    losers.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
    let Some((worst, others)) = losers.split_first() else {
        return vec![match policies {
            [one] => format!("{} lost no job.", name(one)),
            _ => "No policy lost a job.".to_owned(),
        }];
    };
    let mut said = vec![loss(comparison, worst)];
    if !others.is_empty() {
        let each: Vec<String> =
            others.iter().map(|runs| format!("{} lost {}{}", name(runs), lost_count(runs), lost_share(runs))).collect();
        said.push(format!("{}.", list(&each)));
    }
    said
}

fn loss(comparison: &Comparison, runs: &Runs<'_>) -> String {
    let jobs = count(runs.median(|s| s.counts.jobs));
    let mut said = format!("{} lost {} of {jobs} jobs{}", name(runs), lost_count(runs), lost_share(runs));
    let unfinished = runs.median(|s| s.counts.unfinished);
    if unfinished > 0.0 {
        let of_them = if unfinished == lost(runs) { "all".to_owned() } else { count(unfinished) };
        let when = match comparison.partial {
            true => "when the run ended".to_owned(),
            false => format!("when the run ended, at its horizon of {}", chosen(comparison.scenario.horizon)),
        };
        said += &format!(", {of_them} of them unfinished {when}");
    }
    if let Some(spent) = time_to_exhaust(runs.first()) {
        said += &format!(": half of those it gave up had spent every retry within {}", seconds(spent.as_secs_f64()));
        if let [outage] = &comparison.scenario.spells()[..] {
            said += &format!(" of their first call; the outage lasted {}", chosen(outage.window.length()));
        } else {
            said += " of their first call";
        }
    }
    said + "."
}

/// In how many of several repetitions any job was lost.
fn lost_share(runs: &Runs<'_>) -> String {
    let share = Occurrence::named("lost_jobs").filter(|_| runs.is_repeated()).and_then(|lost| runs.share(lost));
    share.map_or_else(String::new, |share| format!(" {}", share.text()))
}

/// What was spent on jobs that could not succeed, where it differs.
fn doomed(policies: &[Runs<'_>]) -> Option<String> {
    let malformed = policies.iter().map(|runs| runs.median(|s| s.counts.malformed)).fold(0.0, f64::max);
    let jobs = policies.iter().map(|runs| runs.median(|s| s.counts.jobs)).fold(0.0, f64::max);
    let all: Vec<&Runs<'_>> = policies.iter().collect();
    let ranked = rank(Metric::named("malformed_requests")?, &all);
    let said = format!("{} of {} could never succeed, their payload being malformed", count(malformed), many(jobs, "job"));
    match &ranked[..] {
        _ if malformed == 0.0 => None,
        [least, .., most] if most.is_apart(least) => Some(format!(
            "{said}: {} spent {} on them, {} {}.",
            name(most.runs),
            many(most.median, "request"),
            name(least.runs),
            count(least.median)
        )),
        _ => Some(format!("{said}.")),
    }
}

/// The median time from an exhausted job's first call to its end.
fn time_to_exhaust(run: &Run) -> Option<Duration> {
    let mut first_sent = vec![None::<Instant>; run.record.jobs.len()];
    let place = |job| run.record.jobs.binary_search_by_key(&job, |record| record.job).ok();
    for attempt in &run.record.attempts {
        if let Some(place) = place(attempt.job) {
            let first = first_sent[place].unwrap_or(attempt.sent);
            first_sent[place] = Some(first.min(attempt.sent));
        }
    }
    let exhausted = |(job, first): (&crate::metrics::JobRecord, Option<Instant>)| {
        (job.state == State::Discarded && job.why == Some(Why::Exhausted)).then_some(job.finished?.since(first?))
    };
    let mut times: Vec<Duration> = run.record.jobs.iter().zip(first_sent).filter_map(exhausted).collect();
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied()
}

/// The highest and the lowest peak of those that lost nothing: after the outage, or over all retries where none is.
fn peaks(comparison: &Comparison, safe: &[&Runs<'_>]) -> Option<String> {
    let (metric, place) = match comparison.scenario.spells().len() {
        0 => ("stampede_peak", "at its busiest"),
        1 => ("recovery_peak", "after the outage"),
        _ => ("recovery_peak", "after an outage"),
    };
    let metric = Metric::named(metric)?;
    let window = chosen(comparison.scenario.stampede_window);
    let ranked = rank(metric, safe);
    match &ranked[..] {
        [] => None,
        // An outage that lasts to the end has nothing after it.
        all if all.iter().all(|one| one.median == 0.0) => None,
        [one] => Some(format!("{} sent at most {} in {window} {place}.", name(one.runs), many(one.median, "request"))),
        [low, .., high] if high.median <= low.median * ALIKE || !high.is_apart(low) => Some(format!(
            "The peaks {place} {}: {} in {window} under each policy that lost nothing.",
            if high.is_apart(low) || low.median == high.median { "were alike" } else { LEVEL },
            if low.median == high.median {
                many(high.median, "request")
            } else {
                format!("{} to {}", count(low.median), many(high.median, "request"))
            }
        )),
        [low, .., high] => {
            let fewer = high.median / low.median;
            let fewer = if low.median > 0.0 { format!(", {} times fewer", times(fewer)) } else { String::new() };
            Some(format!(
                "{} sent up to {} in {window} {place}; {} peaked at {}{fewer}.",
                name(high.runs),
                many(high.median, "request"),
                name(low.runs),
                count(low.median)
            ))
        }
    }
}

/// What is said of medians whose intervals overlap.
const LEVEL: &str = "can't be told apart by their medians";

/// Who of those that lost nothing settled everything first, and what it cost.
fn pace(safe: &[&Runs<'_>]) -> Option<String> {
    let ranked = rank(Metric::named("makespan_s")?, safe);
    let cost = |runs: &Runs<'_>| match Metric::named("amplification").and_then(|m| runs.spread(|s| m.value(s)).median) {
        Some(calls) => format!(" with {} requests per job", ratio(calls)),
        None => String::new(),
    };
    let each = |some: &[&Ranked<'_, '_>]| {
        let each: Vec<String> = some.iter().take(4).map(|one| format!("{}{}", name(one.runs), cost(one.runs))).collect();
        list(&each)
    };
    let (fast, slow) = (ranked.first()?, ranked.last()?);
    let (least, most) = (seconds(fast.median), seconds(slow.median));
    let slower = format!("{} took {most}{}", name(slow.runs), cost(slow.runs));
    // Those that can't be told from the fastest, and can from the slowest.
    let level: Vec<&Ranked<'_, '_>> = ranked.iter().filter(|one| !one.is_apart(fast)).collect();
    Some(if ranked.len() == 1 {
        format!("{} settled all jobs in {least}{}.", name(fast.runs), cost(fast.runs))
    } else if fast.is_apart(slow) && slow.median <= fast.median * ALIKE || fast.median == slow.median {
        format!("All took about as long ({least} to {most}): {}.", each(&ranked.iter().collect::<Vec<_>>()))
    } else if !fast.is_apart(slow) {
        let all = each(&ranked.iter().collect::<Vec<_>>());
        format!("Their times {LEVEL} ({least} to {most}): {all}.")
    } else if level.iter().any(|one| !one.is_apart(slow)) {
        format!("{} settled all jobs in {least}{}; {slower}.", name(fast.runs), cost(fast.runs))
    } else if let [_, .., last] = level[..] {
        let until = seconds(last.median);
        let within = if until == least { least } else { format!("{least} to {until}") };
        format!("Soonest to settle all jobs, and not to be told apart, in {within}: {}; {slower}.", each(&level))
    } else {
        format!("{} settled all jobs soonest, in {least}{}; {slower}.", name(fast.runs), cost(fast.runs))
    })
}

/// Runs whose figures say something of the database or of simq, and not of the policy.
fn limits(policies: &[Runs<'_>]) -> Vec<String> {
    let sentence = |runs: &Runs<'_>| {
        let bounds = [
            (Limit::Harness, "simq or the machine, so its figures are not to be trusted"),
            (Limit::Database, "the database"),
            (Limit::Wakeup, "how its workers learn of work"),
        ];
        let (run, by) = bounds.into_iter().find_map(|(limit, by)| Some((bounded(runs, limit)?, by)))?;
        let evidence = run.summary.limit_evidence.trim().trim_end_matches('.');
        let colon = if evidence.is_empty() { "" } else { ": " };
        Some(format!("{} was limited by {by}{colon}{evidence}.", name(runs)))
    };
    policies.iter().filter_map(sentence).collect()
}

fn bounded<'a>(runs: &Runs<'a>, limit: Limit) -> Option<&'a Run> {
    runs.runs.iter().find(|run| run.summary.limit == limit).copied()
}

/// A policy by a figure that it has.
struct Ranked<'r, 'a> {
    runs: &'r Runs<'a>,
    median: f64,
    spread: Spread,
}

impl Ranked<'_, '_> {
    /// Whether the two may be ranked.
    fn is_apart(&self, other: &Ranked<'_, '_>) -> bool {
        self.spread.is_apart(&other.spread)
    }
}

/// Policies by their median of a figure, lowest first; those without a value are left out.
fn rank<'r, 'a>(metric: &Metric, safe: &[&'r Runs<'a>]) -> Vec<Ranked<'r, 'a>> {
    let ranked = |runs: &&'r Runs<'a>| {
        let spread = runs.spread(|summary| metric.value(summary));
        Some(Ranked { runs, median: spread.median?, spread })
    };
    let mut ranked: Vec<Ranked<'r, 'a>> = safe.iter().filter_map(ranked).collect();
    ranked.sort_by(|a, b| a.median.total_cmp(&b.median));
    ranked
}

fn name(runs: &Runs<'_>) -> String {
    format!("`{}`", runs.policy)
}

fn lost(runs: &Runs<'_>) -> f64 {
    runs.median(|summary| summary.counts.lost())
}

/// A factor, whole from ten on.
fn times(factor: f64) -> String {
    if factor >= 9.95 { count(factor.round()) } else { ratio(factor) }
}

/// The median, or the worst repetition where the median is none.
fn lost_count(runs: &Runs<'_>) -> String {
    let spread = runs.spread(|s| Some(crate::metrics::Value::Count(s.counts.lost())));
    match (spread.median, spread.most) {
        (Some(median), _) if median > 0.0 => count(median),
        (_, most) => format!("up to {}", count(most.unwrap_or(0.0))),
    }
}
