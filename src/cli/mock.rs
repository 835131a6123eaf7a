//! `simq mock`: a scenario's downstream alone, until told to stop.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, anyhow};

use super::exit::Code;
use super::postgres::Stop;
use super::say::say;
use super::{Exit, args, scenario};
use crate::downstream::{Downstream, Mode, Outage};
use crate::real::{Clock, Conduct, Mock, Setup};
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::time::show;

pub(super) fn main(args: &args::Mock) -> anyhow::Result<Exit> {
    let (scenario, _) = scenario::load(&args.scenario)?;
    let seed = args.seed.map_or(scenario.seed, Seed);
    let setup = Setup {
        listen: args.listen,
        admin: Some(args.admin),
        on_first_request: args.start == args::Start::OnFirstRequest,
        log: args.log.clone(),
        keep: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before anything is printed: whoever reads a line may send a signal.
        let mut stop = Stop::listen()?;
        let downstream = Downstream::new(scenario.downstream.clone(), seed);
        let mock = Mock::start(downstream, Clock::starting_in(Duration::ZERO), &setup).map_err(|error| refused(error, args))?;
        announce(&mock, &scenario, seed, &setup)?;
        stop.asked().await;
        let asked_again = async {
            stop.asked().await;
            std::process::exit(Exit::Interrupted as i32);
        };
        tokio::select! {
            conduct = tokio::task::spawn_blocking(move || mock.stop()) => say(&account(&conduct?).to_string()),
            () = asked_again => {}
        }
        Ok(Exit::Done)
    })
}

/// What could not be opened: an address or the log.
fn refused(error: io::Error, args: &args::Mock) -> anyhow::Error {
    let log = args.log.as_ref().map(|log| format!(", logging to `{}`", log.display())).unwrap_or_default();
    let message = format!("could not serve on {} with an admin API on {}{log}", args.listen, args.admin);
    anyhow!(error).context(message).context(Code(Exit::Environment))
}

/// The addresses and the timeline, on stdout: a line each.
fn announce(mock: &Mock, scenario: &Scenario, seed: Seed, setup: &Setup) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on http://{}", mock.address())?;
    if let Some(admin) = mock.admin() {
        writeln!(out, "admin on http://{admin}")?;
    }
    let starts = if setup.on_first_request { "starts with the first request" } else { "has started" };
    let outages = &scenario.downstream.outages;
    match outages.len() {
        0 => writeln!(out, "no outages (seed {})", seed.0)?,
        _ => writeln!(out, "the timeline {starts} (seed {}):", seed.0)?,
    }
    for (number, outage) in (1..).zip(outages) {
        writeln!(out, "  {number}. {}", described(outage))?;
    }
    out.flush().context("stdout")
}

/// An outage in a line: when, what, and whom it strikes.
fn described(outage: &Outage) -> String {
    let window = outage.window;
    let mut said = format!("{} to {}", show(window.from.since_start()), show(window.until.since_start()));
    if let Some(every) = outage.every {
        said += &format!(", every {}", show(every));
    }
    said += &format!(": {}", outage.mode.name());
    if outage.probability < 1.0 {
        let of = if matches!(outage.mode, Mode::Permanent { .. }) { "jobs" } else { "calls" };
        said += &format!(", {} % of {of}", outage.probability * 100.0);
    }
    if let Some(route) = &outage.route {
        said += &format!(", of type {route}");
    }
    said
}

fn account(conduct: &Conduct) -> String {
    let ms = |quantile: f64| conduct.lateness.value_at_quantile(quantile) as f64 / 1e3;
    format!(
        "stopped after {} requests; answers left {:.1} ms late at the median, {:.1} ms at the 99th percentile, {:.1} ms at most",
        conduct.arrivals,
        ms(0.5),
        ms(0.99),
        conduct.lateness.max() as f64 / 1e3,
    )
}
