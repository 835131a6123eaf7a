//! Random scenarios, small and short, under random chaos: whatever the mixture, the audit finds nothing and every job ends.
//!
//! `SIMQ_CHAOS_RUNS` says how many (200), `SIMQ_CHAOS_SEED` plays one alone. They share a server, and so its restarts: a seed that fails in
//! company may pass alone, and then it was somebody else's restart that it could not stand.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use futures_util::stream;
use simq::job::JobId;
use simq::metrics::{Cause, repeats};
use simq::real::pg::throwaway::{Restarter, Throwaway};
use simq::real::{End, Outcome};
use simq::rng::{Draw, Seed, Stream};
use simq::scenario::Scenario;
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};

use super::start;
use crate::play::{eventually, plan, scenario};

/// So many at a time: enough to keep two cores busy while others wait for a lease to run out.
const TOGETHER: usize = 8;

/// A number from `low` up to `high`.
fn between(draw: &mut Draw, low: u64, high: u64) -> u64 {
    low + (draw.unit() * (high - low + 1) as f64) as u64
}

fn one_of<'a>(draw: &mut Draw, words: &[&'a str]) -> &'a str {
    words[between(draw, 0, words.len() as u64 - 1) as usize]
}

/// The scenario of a seed.
pub(super) fn drawn(seed: u64) -> Scenario {
    let mut draw = Seed(seed).draw(Stream::Chaos, JobId(u64::MAX), 0);
    let draw = &mut draw;
    let (workers, lease) = (between(draw, 1, 5), between(draw, 350, 600));
    let mut text = format!("seed = {seed}\nhorizon = '40s'\n");
    let (count, retries) = (between(draw, 15, 50), between(draw, 2, 40));
    let _ = write!(
        text,
        "[[jobs]]\ntype = 'email'\ncount = {count}\npermanent = {:.2}\nmax_retries = {retries}\narrival = 'constant'\nrate = '{}/s'\n",
        draw.between(0.0, 0.2),
        count * 2
    );
    let _ = write!(
        text,
        "[workers]\ncount = {workers}\nslots = {}\nconnections = {}\nclaim = '{}'\nlease = '{lease}ms'\nwait = '{}'\npoll = '100ms'\n",
        between(draw, 1, 5),
        between(draw, 2, 5),
        one_of(draw, &["lease", "lease", "lease", "lease", "lease", "transaction"]),
        one_of(draw, &["listen", "due", "poll"]),
    );
    let _ = write!(
        text,
        "[downstream]\nservers = 20\nqueue = 100\nclient_timeout = '{}ms'\nerror_rate = {:.2}\nlatency = {{ kind = 'exponential', mean = '{}ms' }}\n",
        lease * 2 / 3,
        draw.between(0.0, 0.3),
        between(draw, 5, 60),
    );
    let _ = write!(text, "[policy.p]\nkind = 'constant'\ndelay = '{}ms'\njitter = 'full'\n", between(draw, 1, 60));
    for _ in 0..between(draw, 1, 4) {
        text += &blow(draw, lease);
    }
    if std::env::var_os("SIMQ_CHAOS_SEED").is_some() {
        println!("{text}");
    }
    scenario(&text)
}

fn blow(draw: &mut Draw, lease: u64) -> String {
    let at = between(draw, 20, 600);
    let share = draw.between(0.1, 1.0);
    let what = one_of(
        draw,
        // A restart befalls everybody who plays, so there are few.
        &[
            "kill-workers",
            "pause-workers",
            "kill-workers",
            "pause-workers",
            "kill-workers",
            "pause-workers",
            "kill-workers",
            "cut-connections",
            "cut-connections",
            "hold-transaction",
            "skew-clock",
            "skew-clock",
            "restart-database",
        ],
    );
    let more = match what {
        "kill-workers" => format!("share = {share:.2}\nlasts = '{}ms'", between(draw, 1, 300)),
        "pause-workers" => format!("share = {share:.2}\nlasts = '{}ms'", between(draw, lease / 2, 3 * lease)),
        "restart-database" => format!("mode = '{}'", one_of(draw, &["fast", "immediate", "kill"])),
        "hold-transaction" => format!("lasts = '{}ms'", between(draw, 10, 1000)),
        "skew-clock" => format!("share = {share:.2}\nby = '{}{}m'", one_of(draw, &["+", "-"]), between(draw, 1, 300)),
        _ => String::new(),
    };
    format!("[[chaos]]\nat = '{at}ms'\nwhat = '{what}'\n{more}\n")
}

/// What the chaos of all runs together did.
#[derive(Debug, Default)]
struct Toll {
    leases: AtomicU64,
    killed: AtomicU64,
    paused: AtomicU64,
    failures: AtomicU64,
    restarts: AtomicU64,
    cuts: AtomicU64,
    skews: AtomicU64,
}

impl Toll {
    fn add(&self, outcome: &Outcome) {
        let add = |counter: &AtomicU64, n: u64| counter.fetch_add(n, Ordering::Relaxed);
        let repeats = repeats(&outcome.record);
        let by = |cause: Cause| repeats.iter().filter(|repeat| repeat.cause == cause).count() as u64;
        let hit = |what: &str| outcome.record.blows.iter().filter(|blow| blow.what == what).map(|blow| blow.hit).sum();
        add(&self.leases, outcome.summary.lost_leases);
        add(&self.killed, by(Cause::Killed));
        add(&self.paused, by(Cause::Paused));
        add(&self.failures, outcome.summary.store_failures);
        add(&self.restarts, hit("restart-database"));
        add(&self.cuts, hit("cut-connections"));
        add(&self.skews, hit("skew-clock"));
    }
}

/// Somebody else's restart may come while a run is set up or taken down, and then there is no run to speak of: it is played again.
const TRIES: u32 = 10;

/// Plays the scenario of a seed; what is wrong with it, if anything.
async fn play(seed: u64, database: &PgConnectOptions, restarter: &Restarter, toll: &Toll) -> Option<String> {
    let scenario = drawn(seed);
    let mut tries = 0;
    let outcome = loop {
        tries += 1;
        let mut plan = plan(&scenario, 0, database, &format!("simq_{seed}_{tries}"));
        plan.restarter = Some(restarter.clone());
        match simq::real::run(plan).await {
            Ok(outcome) => break outcome,
            Err(error) if tries == TRIES => return Some(format!("seed {seed} could not be played: {error}")),
            Err(_) => eventually("the server", async || PgConnection::connect_with(database).await.ok())
                .await
                .close()
                .await
                .unwrap_or(()),
        }
    };
    toll.add(&outcome);
    let counts = outcome.summary.counts;
    if outcome.end != End::Finished || counts.unfinished > 0 {
        return Some(format!("seed {seed} did not finish: {counts:?}, {:?}", outcome.record.blows));
    }
    (!outcome.breaches.is_empty()).then(|| format!("seed {seed}: {}; {:?}", outcome.breaches.join("; "), outcome.record.blows))
}

async fn play_all(server: &mut Throwaway, seeds: Vec<u64>, toll: &Toll) -> Vec<String> {
    let (database, restarter) = (server.connect_options(), server.restarter());
    let all = stream::iter(seeds).map(|seed| play(seed, &database, &restarter, toll));
    let all = all.buffer_unordered(TOGETHER).filter_map(async |failure| failure);
    tokio::select! {
        failures = all.collect() => failures,
        ended = server.ended() => panic!("{ended}"),
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_random_scenarios_of_chaos_pass_the_audit() {
    let alone = number("SIMQ_CHAOS_SEED");
    let runs = number("SIMQ_CHAOS_RUNS").unwrap_or(200);
    let seeds: Vec<u64> = alone.map_or_else(|| (1..=runs).collect(), |seed| vec![seed]);
    let toll = Toll::default();
    let mut server = start().await;
    let failures = play_all(&mut server, seeds, &toll).await;
    server.stop().await.unwrap();
    let again = "play one alone with SIMQ_CHAOS_SEED=… cargo test --test it -- chaos::random";
    assert!(failures.is_empty(), "{} failed; {again}\n  {}", failures.len(), failures.join("\n  "));
    println!("{toll:?}");
    if alone.is_none() && runs >= 100 {
        let Toll { leases, killed, paused, failures, restarts, cuts, skews } = &toll;
        for counter in [leases, killed, paused, failures, restarts, cuts, skews] {
            assert!(counter.load(Ordering::Relaxed) >= runs / 20, "chaos bit: {toll:?}");
        }
    }
}

#[test]
fn a_seed_is_always_the_same_scenario() {
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}
