//! Every preset against what its source says: by its cells, and by samples that must fill them and stay within.

use std::time::Duration;

use super::vectors::{DERIVED, PUBLISHED};
use super::*;
use crate::job::JobId;
use crate::policy::cells::{Cell, cells, total};
use crate::policy::{Jitter, Policy};
use crate::rng::{Seed, Stream};

/// A line of the table.
struct Vector {
    id: &'static str,
    retries: &'static str,
    total: &'static str,
    grain: &'static str,
    cells: Vec<Cell>,
}

fn vectors() -> Vec<Vector> {
    let lines: Vec<&'static str> = PUBLISHED.lines().chain(DERIVED.lines()).filter(|line| !line.trim().is_empty()).collect();
    lines
        .into_iter()
        .map(|line| {
            let parts: Vec<&'static str> = line.split('|').map(str::trim).collect();
            let [id, retries, total, grain, cells] = parts[..] else { panic!("{line}") };
            let cells = cells.split(' ').zip(1..).map(|(text, n)| cell(text, n)).collect();
            Vector { id, retries, total, grain, cells }
        })
        .collect()
}

fn cell(text: &str, n: u32) -> Cell {
    let blank = Cell { n, low: 0.0, high: 0.0, low_open: false, high_open: false, mean: 0.0, grain: 0.0, on_cap: 0.0 };
    if let Ok(value) = text.parse() {
        return Cell { low: value, high: value, ..blank };
    }
    let (low, high) = text[1..text.len() - 1].split_once(',').expect("two ends");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    Cell { low: number(low), high: number(high), low_open: text.starts_with('('), high_open: text.ends_with(')'), ..blank }
}

fn policy(id: &str) -> Policy {
    find(id).unwrap_or_else(|| panic!("there is no preset {id}")).policy()
}

/// Rounded in the table to six decimals at most, or to seven figures.
fn close(found: f64, told: f64) -> bool {
    (found - told).abs() <= 1e-6_f64.max(told.abs() * 2e-6)
}

#[test]
fn there_is_a_preset_for_every_line_and_a_line_for_nearly_every_preset() {
    assert!(PUBLISHED.lines().count() >= 92, "{}", PUBLISHED.lines().count());
    for vector in vectors() {
        assert!(find(vector.id).is_some_and(|preset| preset.id == vector.id), "{}", vector.id);
    }
    let lines: Vec<&str> = vectors().iter().map(|vector| vector.id).collect();
    let without: Vec<&str> = all().map(|preset| preset.id).filter(|id| !lines.contains(id)).collect();
    // What these do is in another line's cells, or has a test of its own.
    assert_eq!(
        without,
        [
            "rq.Retry(max=5,interval=[10,30,60])",
            "envoy.retry-budget",
            "k8s.workqueue.controller",
            "k8s.rest",
            "cenkalti.v5",
            "node-retry.randomize",
        ]
    );
}

#[test]
fn every_cell_is_what_the_source_says() {
    for vector in vectors() {
        let policy = policy(vector.id);
        for (found, told) in cells(&policy, 10).iter().zip(&vector.cells) {
            let at = format!("{} n={}: {found:?}, and the source says {told:?}", vector.id, told.n);
            // A wait cut at every step, told without the cuts; and a longest delay that is told rounded.
            let same = close(found.low, told.low) && close(found.high, told.high);
            let beyond = told.low > 1.8e10 && found.low > 1.8e10;
            assert!(same || beyond, "{at}");
            assert_eq!((found.low_open, found.high_open), (told.low_open, told.high_open), "{at}");
            assert!(found.mean >= found.low && found.mean <= found.high, "{at}");
        }
    }
}

#[test]
fn default_retries_and_their_total_are_what_the_source_says() {
    for vector in vectors() {
        let preset = find(vector.id).expect("there is one");
        let policy = preset.policy();
        match vector.retries {
            "-" => assert_eq!(policy.max_retries, None, "{}: the user chooses", vector.id),
            "inf" => assert_eq!((policy.max_retries, policy.limit.elapsed), (Some(u32::MAX), None), "{}", vector.id),
            "120s" => assert_eq!(policy.limit.elapsed, Some(Duration::from_secs(120)), "{}", vector.id),
            "60s" => assert_eq!(policy.limit.elapsed, Some(Duration::from_secs(60)), "{}", vector.id),
            "300s" => assert_eq!(policy.limit.elapsed, Some(Duration::from_secs(300)), "{}", vector.id),
            "15min" => assert_eq!(policy.limit.elapsed, Some(Duration::from_secs(900)), "{}", vector.id),
            number => assert_eq!(preset.retries(), number.parse().ok(), "{}", vector.id),
        }
        let Some(retries) = preset.retries().filter(|_| !vector.total.is_empty()) else { continue };
        let found = total(&policy, &cells(&policy, retries));
        let (low, high) = vector.total.split_once("..").unwrap_or((vector.total, vector.total));
        for (found, told) in [(found.0, low), (found.1, high)] {
            // Told to four figures; a range that begins at zero may lack the unit of its end.
            let (told, unit) = seconds(told, high);
            assert!((found - told).abs() <= told * 6e-4 + unit * 1e-9, "{}: {found} s, and the source says {told} s", vector.id);
        }
    }
}

/// A figure with its unit, in seconds, and the unit.
fn seconds(text: &str, other: &str) -> (f64, f64) {
    let unit_of = |text: &str| -> f64 {
        match text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.') {
            "d" => 86_400.0,
            "h" => 3600.0,
            "min" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => 0.0,
        }
    };
    let unit = if unit_of(text) > 0.0 { unit_of(text) } else { unit_of(other).max(1e-3) };
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    (digits.parse::<f64>().expect("a number") * unit, unit)
}

/// What samples of one cell must be.
struct Sampled {
    least: f64,
    most: f64,
    outside: usize,
    off_grain: usize,
}

/// Samples of retry `n`: independent jobs, and for policies that build on earlier draws both extreme histories.
fn sampled(policy: &Policy, cells: &[Cell], n: u32, grain: f64) -> Sampled {
    let here = &cells[n as usize - 1];
    let before = n.checked_sub(2).map(|i| &cells[i as usize]);
    let lasts: Vec<Option<Duration>> = match before {
        Some(_) if policy.jitter.is_stateless() => vec![None],
        Some(before) => vec![Some(Duration::from_secs_f64(before.low)), Some(Duration::from_secs_f64(before.high))],
        None => vec![None],
    };
    let mut sampled = Sampled { least: f64::MAX, most: 0.0, outside: 0, off_grain: 0 };
    let slack = here.high * 1e-9 + 2e-9;
    let jobs = match policy.jitter {
        _ if here.low == here.high => 3,
        Jitter::Timeline | Jitter::Frozen { .. } => 4000,
        // Most of it is on the cap.
        _ if here.on_cap > 0.5 => 4000,
        _ => 500,
    };
    for job in 0..jobs {
        for last in &lasts {
            // A list that is drawn once for all jobs is another one under another seed.
            let mut draw = Seed(job % 1500).draw(Stream::Jitter, JobId(job + 1), n);
            let delay = policy.delay(n, *last, &mut draw).as_secs_f64();
            sampled.least = sampled.least.min(delay);
            sampled.most = sampled.most.max(delay);
            let open_low = here.low_open && delay <= here.low - slack;
            let open_high = here.high_open && delay >= here.high + slack;
            sampled.outside += usize::from(delay < here.low - slack || delay > here.high + slack || open_low || open_high);
            if grain > 0.0 {
                let steps = (delay - here.low) / grain;
                // The cap and the upper end of an interval of seven figures need not be on the grid.
                let at_end = (delay - here.high).abs() < slack;
                sampled.off_grain += usize::from((steps - steps.round()).abs() > 1e-4 && !at_end);
            }
        }
    }
    sampled
}

#[test]
fn samples_fill_every_cell_to_both_ends_and_keep_its_grain() {
    for vector in vectors() {
        let policy = policy(vector.id);
        let cells = cells(&policy, 10);
        for told in &vector.cells {
            let here = &cells[told.n as usize - 1];
            let grain = match vector.grain {
                "1" => 1.0,
                "n" => f64::from(told.n),
                "1ms" => 0.001,
                "1%" => here.grain,
                _ => 0.0,
            };
            let found = sampled(&policy, &cells, told.n, grain);
            let at = format!("{} n={}: {:?} to {:?}, {here:?}", vector.id, told.n, found.least, found.most);
            assert_eq!((found.outside, found.off_grain), (0, 0), "{at}");
            // 2 % of the interval, or one grain; what two draws make together comes near its ends seldom.
            let width = here.high - here.low;
            let reach = match policy.jitter {
                Jitter::Timeline => width * 0.1,
                Jitter::Frozen { .. } => width * 0.06,
                _ => (width * 0.02).max(grain * 1.001),
            };
            assert!(found.least <= here.low + reach + 1e-8, "the lower end is not approached: {at}");
            assert!(found.most >= here.high - reach - 1e-8 - here.high * 1e-9, "the upper end is not approached: {at}");
        }
    }
}

/// An open end is never drawn where it can be told from its neighbours.
#[test]
fn open_ends_are_never_hit() {
    for vector in vectors() {
        let policy = policy(vector.id);
        for here in cells(&policy, 10).iter().filter(|cell| cell.high_open && cell.high > 1e-3 && cell.high < 1e6) {
            for job in 0..300 {
                let last = (here.n > 1).then(|| Duration::from_secs_f64(here.low));
                let delay = policy.delay(here.n, last, &mut Seed(1).draw(Stream::Jitter, JobId(job), here.n));
                assert!(delay < Duration::from_secs_f64(here.high), "{} n={}", vector.id, here.n);
            }
        }
    }
}

/// The points that the sources give beyond the tenth retry.
#[test]
fn far_cells_are_what_the_source_says() {
    let cell = |id: &str, n: u32| cells(&policy(id), n)[n as usize - 1];
    let ends = |id: &str, n: u32| (cell(id, n).low, cell(id, n).high);
    assert!(close(ends("river", 309).0, 309_f64.powi(4) * 0.9) && close(ends("river", 309).1, 309_f64.powi(4) * 1.1));
    assert_eq!(ends("river", 310).0, ends("river", 310).1, "the largest duration, without jitter");
    assert!(close(ends("graphile-worker", 11).0, 22_026.466) && close(ends("graphile-worker", 24).1, 22_026.466));
    for n in [16, 17, 40] {
        assert_eq!(ends("pg-boss.retryBackoff", n), (32_768.0, 65_536.0));
    }
    assert_eq!(ends("dramatiq", 15), (245_760.0, 491_520.0));
    assert_eq!((ends("dramatiq", 16), cell("dramatiq", 16).high_open), ((302_400.0, 604_800.0), false));
    assert_eq!(ends("dramatiq", 17), (302_400.0, 604_800.0));
    assert_eq!(ends("dramatiq", 40), (302_400.0, 604_800.0));
    assert_eq!(ends("awa", 16), (65_536.0, 81_920.0));
    assert_eq!(ends("awa", 17), (86_400.0, 86_400.0));
    assert_eq!((ends("temporal.activity", 8), ends("temporal.activity", 1000)), ((100.0, 100.0), (100.0, 100.0)));
    for id in ["cenkalti", "rust.backoff"] {
        assert_eq!((ends(id, 13), ends(id, 50)), ((30.0, 90.0), (30.0, 90.0)));
    }
    for id in ["stripe-python", "stripe-node", "stripe-go"] {
        assert_eq!(ends(id, 1), (0.5, 0.5), "exactly half a second in every client");
    }
    assert_eq!(
        (ends("kombu.retry_over_time", 15).0, ends("kombu.retry_over_time", 16).0, ends("kombu.retry_over_time", 17).0),
        (30.0, 32.0, 32.0)
    );
}

#[test]
fn symfony_with_a_longest_delay_has_four_fifths_of_its_mass_on_it() {
    let capped = Policy { cap: Some(Duration::from_secs(60)), order: crate::policy::Order::CapLast, ..policy("symfony") };
    let cells = cells(&capped, 8);
    assert_eq!((cells[6].low, cells[6].high), (57.6, 60.0));
    assert!((cells[6].on_cap - 0.81).abs() < 0.005, "{:?}", cells[6]);
    assert_eq!((cells[7].low, cells[7].high, cells[7].on_cap), (60.0, 60.0, 1.0));
}

#[test]
fn oban_shrinks_its_exponent_where_more_attempts_are_allowed() {
    let policy = Policy { max_retries: Some(39), ..policy("oban") };
    let exponents: Vec<u32> = [1, 2, 20, 40].into_iter().map(|n| policy.counter.value(n, 39)).collect();
    assert_eq!(exponents, [1, 1, 10, 20], "a half is rounded up");
}

#[test]
fn rq_reads_its_list_from_the_end() {
    let with = |max| Policy { max_retries: Some(max), ..policy("rq.Retry(max=5,interval=[10,30,60])") };
    let waits = |max| cells(&with(max), max).iter().map(|cell| cell.low).collect::<Vec<_>>();
    assert_eq!(waits(5), [10.0, 10.0, 10.0, 30.0, 60.0]);
    assert_eq!(waits(2), [30.0, 60.0]);
}

#[test]
fn names_are_unique_and_the_nearest_is_found() {
    let mut names: Vec<String> =
        all().flat_map(|preset| preset.aliases.iter().chain([&preset.id])).map(|id| id.to_lowercase()).collect();
    names.sort();
    let twice: Vec<&String> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
    assert!(twice.is_empty(), "two presets of one name: {twice:?}");
    assert_eq!(meant("sidekik"), Some("sidekiq"));
    assert_eq!(meant("polly.v8"), Some("polly.v8"));
    assert_eq!(meant("agenda"), Some("agenda.exponential"));
    assert_eq!(meant("elephants"), None);
    assert_eq!(find("Sidekiq").map(|preset| preset.id), Some("sidekiq"));
}

#[test]
fn groups_come_one_after_another_and_every_preset_says_where_it_is_from() {
    let groups: Vec<Group> = all().map(|preset| preset.group).collect();
    assert!(groups.is_sorted());
    for preset in all() {
        assert!(!preset.version.is_empty() && !preset.source.is_empty() && !preset.system.is_empty(), "{}", preset.id);
    }
}

/// T-04: a formula without a cap may be safe only because of a small limit; the largest delay at each limit is a fact we can state.
#[test]
fn t04_every_policy_states_its_largest_delay_at_its_own_limit() {
    for preset in all() {
        if let Some(retries) = preset.retries().filter(|retries| *retries > 0) {
            let last = cells(&preset.policy(), retries).last().map_or(0.0, |cell| cell.high);
            assert!(last.is_finite() && last < 40.0 * 86_400.0, "{}: {last} s before the last retry", preset.id);
        }
    }
}

/// T-35: both standards of AWS are there, and differ by base and by price.
#[test]
fn t35_both_of_awss_standards_are_in_the_table() {
    let (old, new) = (policy("aws.standard-2.0"), policy("aws.2026.transient"));
    assert_eq!((old.backoff.base().as_millis(), new.backoff.base().as_millis()), (1000, 50));
    assert_ne!(old.budget, new.budget);
}

/// T-38: no backoff at all is what most systems do when their user writes only a number of tries.
#[test]
fn t38_no_backoff_is_a_common_default() {
    let zero = all().filter(|preset| policy(preset.id).longest(1).is_zero() && policy(preset.id).longest(5).is_zero()).count();
    assert!(zero >= 15, "{zero}");
}
