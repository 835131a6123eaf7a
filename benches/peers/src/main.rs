//! simq's engine beside other job queues on Postgres: no-op jobs, preloaded, one throwaway server, in turns, medians of three.
//!
//! Each contender is a process of its own: it loads its jobs, says `ready`, is told `go`, and says `done` when every job was run *and*
//! acknowledged in the database. Between the two the clock runs, and the processor time of its processes and of the server's is
//! counted.
//!
//! `cargo run --release` in this folder; the ones written in JavaScript join in after `npm ci` in `node/`.

mod accounts;
mod apalis;
mod graphile;
mod ours;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use accounts::{Accounts, Spent};
use anyhow::{Context, ensure};
use simq::real::pg::throwaway::{Options, Throwaway};

const ROUNDS: usize = 3;

/// One that competes.
struct Contender {
    name: &'static str,
    jobs: u64,
    /// How to start it: words for this program, or for `node`.
    command: Words,
}

enum Words {
    Own(&'static [&'static str]),
    Node(&'static [&'static str]),
}

/// Each with the settings that its own project measures it with, or better.
const CONTENDERS: [Contender; 6] = [
    Contender { name: "simq, 2 workers, batches of 500", jobs: 200_000, command: Words::Own(&["ours", "2", "500"]) },
    Contender { name: "simq, 2 workers, batches of 100", jobs: 100_000, command: Words::Own(&["ours", "2", "100"]) },
    Contender {
        name: "graphile_worker (Rust), 500 at once, local queue 5000",
        jobs: 100_000,
        command: Words::Own(&["graphile", "500", "5000", "5"]),
    },
    Contender {
        name: "graphile_worker (Rust), 24 at once, local queue 500",
        jobs: 50_000,
        command: Words::Own(&["graphile", "24", "500", "5"]),
    },
    Contender { name: "apalis-postgres, 4 workers, batches of 500", jobs: 20_000, command: Words::Own(&["apalis", "4", "500"]) },
    Contender {
        name: "graphile-worker (node), 4 x 24 at once, local queue 500",
        jobs: 50_000,
        command: Words::Node(&["graphile.mjs", "4", "24", "500", "0"]),
    },
];

fn main() -> ExitCode {
    // simq's throwaway server is guarded by a process of this very program.
    if std::env::args().nth(1).as_deref() == Some("postgres-guard") {
        return simq::cli::main();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => runtime.block_on(compare()),
        ["ours", jobs, workers, batch] => runtime.block_on(ours::drain(jobs.parse()?, workers.parse()?, batch.parse()?)),
        ["graphile", jobs, at_once, queue, delay] => {
            runtime.block_on(graphile::drain(jobs.parse()?, at_once.parse()?, queue.parse()?, delay.parse()?))
        }
        ["apalis", jobs, workers, batch] => runtime.block_on(apalis::drain(jobs.parse()?, workers.parse()?, batch.parse()?)),
        _ => anyhow::bail!("run it without arguments"),
    }
}

async fn compare() -> anyhow::Result<()> {
    let node = Path::new(env!("CARGO_MANIFEST_DIR")).join("node");
    let takes_part = |contender: &&Contender| matches!(contender.command, Words::Own(_)) || node.join("node_modules").exists();
    let contenders: Vec<&Contender> = CONTENDERS.iter().filter(takes_part).collect();
    let mut results: Vec<Vec<Spent>> = vec![Vec::new(); contenders.len()];
    for round in 1..=ROUNDS {
        for (contender, results) in contenders.iter().zip(&mut results) {
            // A fresh server for each: nobody inherits another's dead rows.
            let server = Throwaway::start(Options::default()).await?;
            let spent = play(contender, &server, &node).with_context(|| contender.name)?;
            eprintln!("round {round}: {}: {:.0} jobs/s", contender.name, contender.jobs as f64 / spent.wall.as_secs_f64());
            results.push(spent);
            server.stop().await?;
        }
    }
    print(&contenders, &mut results);
    Ok(())
}

fn play(contender: &Contender, server: &Throwaway, node: &Path) -> anyhow::Result<Spent> {
    let jobs = contender.jobs.to_string();
    let mut command = match contender.command {
        Words::Own(words) => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(words[0]).arg(&jobs).args(&words[1..]);
            command
        }
        Words::Node(words) => {
            let mut command = Command::new("node");
            command.current_dir(node).arg(words[0]).arg(&jobs).args(&words[1..]);
            command
        }
    };
    command.env("DATABASE_URL", server.url()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("it can't be started")?;
    let result = conduct(&mut child, server.server_pid());
    let _gone = child.kill();
    child.wait()?;
    result
}

/// Lets it load, run and end; counts what it took in between.
fn conduct(child: &mut Child, server: u32) -> anyhow::Result<Spent> {
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?).lines();
    let mut await_word = |word: &str| -> anyhow::Result<()> {
        for line in lines.by_ref() {
            if line?.trim() == word {
                return Ok(());
            }
        }
        anyhow::bail!("it ended before it said `{word}`")
    };
    await_word("ready")?;
    let accounts = Accounts::open(child.id(), server);
    child.stdin.as_mut().context("it has an input")?.write_all(b"go\n")?;
    await_word("done")?;
    let spent = accounts.close();
    ensure!(spent.wall > Duration::ZERO, "it took no time");
    Ok(spent)
}

fn print(contenders: &[&Contender], results: &mut [Vec<Spent>]) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let rates: Vec<f64> = contenders
        .iter()
        .zip(results.iter())
        .map(|(contender, spent)| median(spent.iter().map(|spent| contender.jobs as f64 / spent.wall.as_secs_f64()).collect()))
        .collect();
    let best =
        contenders.iter().zip(&rates).filter(|(c, _)| !c.name.starts_with("simq")).map(|(_, rate)| *rate).fold(1.0, f64::max);
    println!("medians of {ROUNDS} rounds in turns; a fresh server for each; synchronous_commit on");
    for ((contender, spent), rate) in contenders.iter().zip(results.iter()).zip(&rates) {
        let per_job = |part: fn(&Spent) -> Duration| {
            median(spent.iter().map(|spent| part(spent).as_secs_f64() * 1e6 / contender.jobs as f64).collect())
        };
        println!(
            "{:<58} {rate:>9.0} jobs/s  {:>7.1} us here  {:>7.1} us in the server  {:>5.2} of the best peer",
            contender.name,
            per_job(|spent| spent.client),
            per_job(|spent| spent.server),
            rate / best,
        );
    }
}
