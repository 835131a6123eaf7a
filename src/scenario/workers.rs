//! `[workers]`: who does the jobs.

use std::time::Duration;

use super::error::Problem;
use super::file::Check;
use super::table::{Section, table};
use super::value::{Count, Length};
use super::words::words;
use crate::queue::ClaimMode;
use crate::time::show;
use crate::worker::{Settings, Wait};

table! {
    /// The worker processes.
    Workers in "[workers]" {
        /// How many workers.
        count: Count<1, 1000> = 4,
        /// Attempts that one worker has under way at once.
        slots: Count<1, 10_000> = 16,
        /// Database connections that all workers share.
        connections: Count<1, 500> = 4,
        /// `lease`: claim and settle in short transactions, work between them. `transaction`: hold one open while a job runs.
        claim: Claim = "lease",
        /// Most jobs taken by one claim; as many as `slots` (at most 1000) if not given, 1 with `claim = "transaction"`.
        #[schemars(default)]
        batch: Count<1, 1000>,
        /// How long a claim is exclusive without being extended; longer than the downstream's `client_timeout`.
        lease: Length = "30s",
        /// How an idle worker learns of work: `listen` sleeps until the next job is due or the database tells of a new one,
        /// `due` is not told of new ones, `poll` asks every so often.
        wait: Learn = "listen",
        /// With `poll`, the period; otherwise the longest sleep.
        poll: Length = "200ms",
    }
}

words! {
    /// How jobs are claimed.
    Claim {
        Lease = "lease",
        Transaction = "transaction",
    }
}

words! {
    /// How an idle worker learns of work.
    Learn {
        Due = "due",
        Poll = "poll",
        Listen = "listen",
    }
}

/// How long a caller waits for an answer, and where the file says so, if it does.
#[derive(Clone, Debug)]
pub(super) struct Timeout {
    pub(super) value: Duration,
    pub(super) place: Option<super::table::Place>,
}

/// The settings; a file without the table has all the defaults.
pub(super) fn check(section: Option<&Section<Workers>>, timeout: Timeout, check: &mut Check<'_>) -> Settings {
    let absent = Workers::default();
    let raw = section.map_or(&absent, |section| &section.raw);
    let claim = raw.claim.or(Claim::Lease);
    let slots = raw.slots.or(Count(16)).0;
    let batch = match claim {
        Claim::Lease => raw.batch.or(Count(slots.min(1000))).0,
        Claim::Transaction => {
            check_batch(raw, check);
            1
        }
    };
    let poll = raw.poll.or(Length(Duration::from_millis(200))).0;
    let lease = raw.lease.or(Length(Duration::from_secs(30))).0;
    if claim == Claim::Lease {
        check_lease(raw, lease, &timeout, check);
    }
    Settings {
        count: raw.count.or(Count(4)).0 as u32,
        slots: slots as u32,
        connections: raw.connections.or(Count(4)).0 as u32,
        claim: if claim == Claim::Lease { ClaimMode::Lease } else { ClaimMode::Transaction },
        batch: batch as u32,
        lease,
        wait: match raw.wait.or(Learn::Listen) {
            Learn::Due => Wait::Due { at_most: poll },
            Learn::Poll => Wait::Poll { every: poll },
            Learn::Listen => Wait::Listen { at_most: poll },
        },
    }
}

fn check_batch(raw: &Workers, check: &mut Check<'_>) {
    let (Some(batch), Some(claim)) = (raw.batch.given(), raw.claim.given()) else { return };
    if batch.value.0 > 1 {
        let message = format!("`batch` is {}, but a claiming transaction holds one job", batch.value.0);
        let problem = Problem::new(&batch.place, message)
            .label(&batch.place, "more than one job")
            .label(&claim.place, "one transaction for each job")
            .help("leave `batch` out, or write `claim = \"lease\"`");
        check.report(problem);
    }
}

fn check_lease(raw: &Workers, lease: Duration, timeout: &Timeout, check: &mut Check<'_>) {
    if lease > timeout.value {
        return;
    }
    let places = (raw.lease.given().map(|lease| &lease.place), timeout.place.as_ref());
    let Some(place) = places.0.or(places.1) else { return };
    let message = format!(
        "`lease` ({}) is not longer than `client_timeout` ({}), so a slow call outlives its claim",
        show(lease),
        show(timeout.value)
    );
    let mut problem = Problem::new(place, message);
    if let Some(place) = places.0 {
        problem = problem.label(place, "a job may be taken by others after this");
    }
    if let Some(place) = places.1 {
        problem = problem.label(place, "while its call may still be waiting");
    }
    check.report(problem.help("raise `lease` well above `client_timeout`, or lower `client_timeout`"));
}
