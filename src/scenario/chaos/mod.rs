//! `[[chaos]]`: what befalls the machinery in the course of a run: workers that die or stand still, a database that goes away.
//!
//! An outage strikes the service that jobs call; chaos strikes simq's own side of it. Here are the entries as written, and what may
//! be wrong with them; what they mean is in `plan.rs`.

mod plan;

use std::time::Duration;

pub use plan::{Chaos, Crowd, Restart, Skew, Strike, What, plan};

use crate::scenario::error::Problem;
use crate::scenario::file::Check;
use crate::scenario::table::{At, Section, table};
use crate::scenario::value::{Length, Offset, Shift, SomeShare};
use crate::scenario::words::words;
use crate::time::show;

/// More blows than these are no scenario but a mistake in `every`.
const MOST: u64 = 1000;

table! {
    /// What befalls workers, connections or the database in the course of a run.
    #[schemars(rename = "Chaos")]
    RawChaos in "[[chaos]]" {
        /// When, from the run's start.
        at: Offset,
        /// What happens.
        what: Kind,
        /// `pause-workers` and `hold-transaction`: how long. `kill-workers`: how long their places stay empty; left out: for good.
        #[schemars(default)]
        lasts: Length,
        /// It comes again each time so much has passed; left out: it comes once.
        #[schemars(default)]
        every: Length,
        /// `kill-workers`, `pause-workers`, `skew-clock`: the share of the workers that are hit, at least one; left out: one.
        #[schemars(default)]
        share: SomeShare,
        /// `restart-database`: how the server is stopped.
        mode: Mode = "fast",
        /// `skew-clock`: how wrong the clock is, such as `+1h` or `-90s`.
        #[schemars(default)]
        by: Shift,
    }
}

words! {
    /// What happens.
    Kind {
        KillWorkers = "kill-workers",
        PauseWorkers = "pause-workers",
        CutConnections = "cut-connections",
        RestartDatabase = "restart-database",
        HoldTransaction = "hold-transaction",
        SkewClock = "skew-clock",
    }
}

words! {
    /// How the server is stopped.
    Mode {
        Fast = "fast",
        Immediate = "immediate",
        Kill = "kill",
    }
}

impl Kind {
    fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::KillWorkers | Kind::PauseWorkers => &["at", "what", "lasts", "every", "share"],
            Kind::CutConnections => &["at", "what", "every"],
            Kind::RestartDatabase => &["at", "what", "every", "mode"],
            Kind::HoldTransaction => &["at", "what", "lasts", "every"],
            Kind::SkewClock => &["at", "what", "share", "by"],
        }
    }
}

/// The entries in the order of the file, for so many workers.
pub(super) fn check(sections: &[Section<RawChaos>], workers: u32, check: &mut Check<'_>) -> Vec<Chaos> {
    let mut entries = Vec::new();
    for section in sections {
        let Some(chaos) = entry(section, check) else { continue };
        check_times(section, &chaos, check);
        check_nobody_left(section, &chaos, workers, check);
        entries.push(chaos);
    }
    entries
}

fn entry(section: &Section<RawChaos>, check: &mut Check<'_>) -> Option<Chaos> {
    let (raw, header) = (&section.raw, &section.header);
    let at = raw.at.need("at", header, check.problems);
    let kind = raw.what.need("what", header, check.problems)?.value;
    header.takes(&format!("`what = \"{}\"`", kind.word()), kind.keys(), check.problems);
    let lasts = match kind {
        Kind::PauseWorkers | Kind::HoldTransaction => Some(raw.lasts.need("lasts", header, check.problems)?.value.0),
        _ => raw.lasts.value().map(|lasts| lasts.0),
    };
    let share = raw.share.value().map_or(Crowd::One, |share| Crowd::Share(share.0));
    let what = match kind {
        Kind::KillWorkers => What::KillWorkers { share, lasts },
        Kind::PauseWorkers => What::PauseWorkers { share, lasts: lasts? },
        Kind::CutConnections => What::CutConnections,
        Kind::RestartDatabase => What::RestartDatabase { mode: mode(raw.mode.or(Mode::Fast)) },
        Kind::HoldTransaction => What::HoldTransaction { lasts: lasts? },
        Kind::SkewClock => What::SkewClock { share, by: skew(&raw.by.need("by", header, check.problems)?.value) },
    };
    Some(Chaos { at: at?.value.0, every: raw.every.value().map(|every| every.0), what })
}

fn mode(mode: Mode) -> Restart {
    match mode {
        Mode::Fast => Restart::Fast,
        Mode::Immediate => Restart::Immediate,
        Mode::Kill => Restart::Kill,
    }
}

fn skew(shift: &Shift) -> Skew {
    if shift.behind { Skew::Behind(shift.by) } else { Skew::Ahead(shift.by) }
}

fn check_times(section: &Section<RawChaos>, chaos: &Chaos, check: &mut Check<'_>) {
    let raw = &section.raw;
    let Some(at) = raw.at.given() else { return };
    if check.is_over_by(at.value.0) {
        let problem = Problem::new(&at.place, format!("this happens at {}, after the run", show(at.value.0)));
        let problem = check.stops(problem.label(&at.place, "happens here")).help("raise `horizon`, or let it happen earlier");
        return check.report(problem);
    }
    if let Some(lasts) = raw.lasts.given() {
        check_end(at, lasts, check);
        check_every(raw, lasts, check);
    }
    let turns = check.horizon.map_or(0, |horizon| chaos.turns(horizon.value.0));
    if let Some(every) = raw.every.given().filter(|_| turns > MOST) {
        let problem = Problem::new(&every.place, format!("this happens {turns} times in one run"));
        check.report(problem.help(format!("raise `every`: {MOST} times are the most")));
    }
}

fn check_end(at: &At<Offset>, lasts: &At<Length>, check: &mut Check<'_>) {
    let end = at.value.0.saturating_add(lasts.value.0);
    if check.is_over(end) {
        let problem = Problem::new(&lasts.place, format!("this is over at {}, after the run", show(end)))
            .label(&at.place, "starts here")
            .label(&lasts.place, "lasts this long");
        let problem = check.stops(problem).help("raise `horizon`, start it earlier or make it shorter");
        check.report(problem);
    }
}

fn check_every(raw: &RawChaos, lasts: &At<Length>, check: &mut Check<'_>) {
    let Some(every) = raw.every.given().filter(|every| lasts.value.0 > every.value.0) else { return };
    let message = format!("`every` ({}) is shorter than `lasts` ({})", show(every.value.0), show(lasts.value.0));
    let problem = Problem::new(&every.place, message)
        .label(&lasts.place, "lasts so long")
        .label(&every.place, "and comes again")
        .help("raise `every` or lower `lasts`: a turn ends before the next begins");
    check.report(problem);
}

/// Killed for good, all of them: then nothing happens any more, and a run only waits for its horizon.
fn check_nobody_left(section: &Section<RawChaos>, chaos: &Chaos, workers: u32, check: &mut Check<'_>) {
    let What::KillWorkers { lasts: None, .. } = chaos.what else { return };
    if section.raw.lasts.is_wrong() || section.raw.share.is_wrong() {
        return;
    }
    let turns = check.horizon.map_or(1, |horizon| chaos.turns(horizon.value.0));
    let killed = u64::from(chaos.what.struck(workers)).saturating_mul(turns);
    if killed >= u64::from(workers) {
        let place = section.raw.share.given().map_or(&section.header.place, |share| &share.place);
        let message = format!("this kills {} for good, so nobody is left to do the jobs", all(workers));
        check.report(Problem::new(place, message).help("say with `lasts` when their places are filled again, or lower `share`"));
    }
}

fn all(workers: u32) -> String {
    if workers == 1 { "the only worker".to_owned() } else { format!("all {workers} workers") }
}

/// The longest that a clock may be wrong.
pub(super) const LONGEST_SKEW: Duration = Duration::from_secs(365 * 86_400);
