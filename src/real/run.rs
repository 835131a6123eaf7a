//! One policy, played once: set up, start the clock, wait for the end, take stock.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::bell::Bell;
use super::chaos::{Conductor, Place};
use super::clock::Clock;
use super::drive::{Life, Phase, Shared};
use super::handler::Handler;
use super::http::Caller;
use super::listen::{listen, pass_on};
use super::load::Load;
use super::machine;
use super::mock::{Mock, Setup};
use super::outcome::{Found, Outcome};
use super::pg::{Schema, Store, is_idle, rows};
use super::users::Users;
use super::{Error, Plan};
use crate::downstream::Downstream;
use crate::metrics::{Blow, End, Sample};
use crate::policy;
use crate::scenario::chaos::What;
use crate::time::Instant;
use crate::worker::Wait;
use crate::workload::{self, Job};

/// From the start of the downstream to the start of the clock.
const HEAD_START: Duration = Duration::from_millis(100);
/// How often the store itself is asked whether all jobs have ended, beside the counting.
const LOOK: Duration = Duration::from_secs(1);
/// Beyond the client's time-out, how long workers may take to finish what they have before they are cut.
const GRACE: Duration = Duration::from_secs(10);

/// Plays one policy once, in a schema that is gone afterwards unless the plan keeps it.
///
/// # Errors
/// If the database or the downstream could not be set up, or the database stayed away for long. The schema is dropped all
/// the same, if it can be.
pub async fn run(plan: Plan<'_>) -> Result<Outcome, Error> {
    let restarts = plan.scenario.chaos.iter().any(|chaos| matches!(chaos.what, What::RestartDatabase { .. }));
    if restarts && plan.restarter.is_none() {
        return Err(Error::NotOurs);
    }
    let schema = Schema::create(plan.database, &plan.schema, &plan.note).await?;
    let outcome = play(&plan, &schema).await;
    if plan.keep {
        return outcome;
    }
    let dropped = schema.drop().await;
    let outcome = outcome?;
    dropped?;
    Ok(outcome)
}

async fn play(plan: &Plan<'_>, schema: &Schema) -> Result<Outcome, Error> {
    let jobs = workload::jobs(&plan.scenario.jobs, plan.seed);
    let store = Store::open(schema, &plan.scenario.workers).await?;
    let mut watcher = PgConnection::connect_with(schema.options()).await?;
    if plan.own_server {
        sqlx::query("CHECKPOINT").execute(&mut watcher).await?;
    }
    let clock = Clock::starting_in(HEAD_START);
    let downstream = Downstream::new(plan.scenario.downstream.clone(), plan.seed);
    let mock = Mock::start(downstream, clock, &Setup::of_a_run()).map_err(Error::Mock)?;
    let shared = Arc::new(Shared {
        clock,
        store,
        handler: Handler::Http(Caller::new(mock.address())),
        live: plan.live.clone(),
        bell: Bell::default(),
        all_ended: Notify::new(),
        jobs: jobs.len() as u64,
    });
    shared.live.reset();
    let mut stage = Stage::enter(plan, schema, &shared, &jobs, mock.address()).await?;
    let end = stage.wait(plan, &shared, schema, &mut watcher).await?;
    let (crew, load, blows) = stage.leave(plan).await?;
    let ended = clock.now();
    let users = stage.users.take().map(Users::leave);
    let conduct = mock.stop();
    shared.store.close().await;
    let rows = rows(schema).await?;
    let samples = std::mem::take(&mut *stage.samples.lock().expect("the sampler does not panic"));
    Ok(Outcome::of(
        plan,
        Found {
            end,
            ended,
            jobs,
            rows,
            crew,
            loaded: load,
            conduct,
            starved: shared.handler.starved() + users.as_ref().map_or(0, |users| users.starved),
            users: users.map(|users| users.calls).unwrap_or_default(),
            transactions: shared.store.transactions(),
            samples,
            blows,
        },
    ))
}

/// The tasks of a run.
struct Stage {
    phase: watch::Sender<Phase>,
    workers: JoinSet<Vec<Life>>,
    conductor: Conductor,
    load: Option<JoinHandle<Result<Histogram<u64>, sqlx::Error>>>,
    loaded: Option<Histogram<u64>>,
    others: JoinSet<()>,
    users: Option<Users>,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Stage {
    /// Everybody takes their place; the clock starts.
    async fn enter(
        plan: &Plan<'_>,
        schema: &Schema,
        shared: &Arc<Shared>,
        jobs: &[Job],
        address: SocketAddr,
    ) -> Result<Stage, Error> {
        let (phase, phases) = watch::channel(Phase::Run);
        let mut others = JoinSet::new();
        let notify = matches!(plan.scenario.workers.wait, Wait::Listen { .. });
        if notify {
            let listener = listen(schema).await?;
            others.spawn(pass_on(listener, schema.clone(), shared.clone()));
        }
        let clock = shared.clock;
        let timekeeper = shared.clone();
        others.spawn(async move { timekeeper.bell.keep_time(clock).await });
        let samples = Arc::new(Mutex::new(Vec::new()));
        let kept = samples.clone();
        clock.started().await;
        others.spawn(machine::watch(clock, move |sample| kept.lock().expect("readers do not panic").push(sample)));
        let load = Load {
            jobs: jobs.to_vec(),
            groups: plan.scenario.jobs.clone(),
            max_retries: plan.policy.row_limit(),
            notify,
            mode: plan.scenario.workers.claim,
        };
        let load = tokio::spawn(load.run(schema.clone(), clock));
        let mut workers = JoinSet::new();
        let state = policy::Shared::default();
        let (mut conductor, reins) = Conductor::of(plan.scenario.workers.count);
        for (number, reins) in (0..).zip(reins) {
            let place = Place {
                number,
                settings: plan.scenario.workers,
                timeout: plan.scenario.downstream.client_timeout,
                policy: plan.policy.clone(),
                seed: plan.seed,
                state: state.clone(),
                reins,
                tape: plan.tape,
            };
            workers.spawn(place.hold(shared.clone(), phases.clone()));
        }
        conductor.start(plan.scenario.strikes(plan.seed), clock, schema, plan.restarter.clone());
        let users = plan.scenario.downstream.users.as_ref();
        let users = users.map(|users| Users::come(users.clone(), plan.seed, address, clock));
        Ok(Stage { phase, workers, conductor, load: Some(load), loaded: None, others, users, samples })
    }

    /// Waits until every job has ended, the horizon has come, or somebody says stop.
    async fn wait(
        &mut self,
        plan: &Plan<'_>,
        shared: &Shared,
        schema: &Schema,
        watcher: &mut PgConnection,
    ) -> Result<End, Error> {
        let clock = shared.clock;
        let horizon = Instant::START + plan.scenario.horizon;
        let mut stop = plan.stop.clone();
        let mut look_at = clock.now() + LOOK;
        loop {
            tokio::select! {
                () = shared.all_ended.notified() => return Ok(End::Finished),
                () = clock.sleep_until(horizon) => return Ok(End::Horizon),
                Ok(_) = stop.wait_for(|stop| *stop) => return Ok(End::Stopped),
                loaded = join(&mut self.load), if self.load.is_some() => {
                    self.load = None;
                    self.loaded = Some(loaded??);
                }
                () = clock.sleep_until(look_at) => {
                    look_at = clock.now() + LOOK;
                    // A database that is away for a while is no reason to stop: the workers wait for it too.
                    let idle = self.loaded.is_some() && is_idle(watcher).await.unwrap_or(false);
                    if idle {
                        return Ok(End::Finished);
                    }
                    if watcher.ping().await.is_err()
                        && let Ok(again) = PgConnection::connect_with(schema.options()).await
                    {
                        *watcher = again;
                    }
                }
            }
        }
    }

    /// Chaos ends, workers finish what they have under way, and the others go.
    async fn leave(&mut self, plan: &Plan<'_>) -> Result<Left, Error> {
        if let Some(load) = self.load.take() {
            load.abort();
        }
        let blows = self.conductor.stop().await;
        let _ = self.phase.send(Phase::Drain);
        let patience = tokio::time::Instant::now() + plan.scenario.downstream.client_timeout + GRACE;
        let mut crew = Vec::new();
        while !self.workers.is_empty() {
            match tokio::time::timeout_at(patience, self.workers.join_next()).await {
                Ok(Some(done)) => crew.extend(done?),
                Ok(None) => break,
                Err(_) => {
                    let _ = self.phase.send(Phase::Cut);
                    while let Some(done) = self.workers.join_next().await {
                        crew.extend(done?);
                    }
                }
            }
        }
        self.others.shutdown().await;
        Ok((crew, self.loaded.take(), blows))
    }
}

/// What those who took part leave behind.
type Left = (Vec<Life>, Option<Histogram<u64>>, Vec<Blow>);

async fn join<T>(handle: &mut Option<JoinHandle<T>>) -> Result<T, tokio::task::JoinError> {
    match handle {
        Some(handle) => handle.await,
        None => std::future::pending().await,
    }
}
