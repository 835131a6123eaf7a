//! `simq work`: workers in a process of their own, on a queue that another process has made. For tests that kill such a process.

use std::io::{self, Read, Write};
use std::time::Duration;

use anyhow::Context;

use super::exit::Code;
use super::{Exit, args};
use crate::policy::{Backoff, Policy};
use crate::queue::ClaimMode;
use crate::real::pg::{self, Schema};
use crate::real::{Caller, Crew, Handler, work};
use crate::rng::Seed;
use crate::worker::{Settings, Wait};

pub(super) fn main(args: &args::Work) -> anyhow::Result<Exit> {
    let options = pg::parse_url(&args.database_url).context(Code(Exit::Usage))?;
    let schema = Schema::existing(&options, &args.schema);
    let workers = Settings {
        count: args.count,
        slots: args.slots,
        connections: args.count + 1,
        claim: ClaimMode::Lease,
        batch: args.slots,
        lease: Duration::from_millis(args.lease_ms),
        wait: Wait::Due { at_most: Duration::from_millis(20) },
    };
    let policy = Policy { backoff: Backoff::Constant { delay: Duration::from_millis(20) }, ..Policy::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (over, ended) = tokio::sync::oneshot::channel();
    // A thread, since a runtime would wait for its blocked read at the end.
    std::thread::spawn(move || {
        // An error is the end too, and who waits may be gone.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = over.send(());
    });
    let drained = runtime.block_on(async {
        // Here, since a caller wants a runtime.
        let crew = Crew { workers, policy, seed: Seed(1), handler: Handler::Http(Caller::new(args.downstream)) };
        work(&schema, crew, args.first, async { ended.await.unwrap_or(()) }).await
    });
    let tally = drained.context(Code(Exit::Environment))?.tally;
    writeln!(io::stdout(), "sent {} completed {} lost {}", tally.sent, tally.completed, tally.lost)?;
    Ok(Exit::Done)
}
