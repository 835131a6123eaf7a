//! One script, two stores: whatever is inserted, claimed, settled, extended and reaped in whatever order, the store in Postgres
//! answers as the reference store does, and its rows say the same.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use simq::job::{JobId, State};
use simq::policy::Why;
use simq::queue::{ClaimMode, Claimed, How, MemoryRow, MemoryStore, Settlement, Token};
use simq::real::pg::Store;
use simq::time::Instant;
use tokio::sync::Mutex;

use crate::bench::{Bench, MINUTE, New};

/// What is done to both stores. Claims are named by their place in the order of claiming.
#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<(i16, u32)>),
    Claim {
        limit: u32,
        lease: u32,
    },
    Settle(Vec<(prop::sample::Index, Ending)>),
    /// The last settlement, sent once more.
    Again,
    /// All that is held, as a worker does it.
    Extend {
        lease: u32,
    },
    Reap,
    Pass {
        minutes: u32,
    },
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Complete,
    Retry { minutes: u32 },
    Permanent,
    Exhausted,
    Release,
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        2 => Just(Ending::Complete),
        4 => (0..4_u32).prop_map(|minutes| Ending::Retry { minutes }),
        1 => Just(Ending::Permanent),
        1 => Just(Ending::Exhausted),
        1 => Just(Ending::Release),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        3 => prop::collection::vec((-1..2_i16, 0..3_u32), 1..5).prop_map(Step::Insert),
        5 => (1..5_u32, 1..4_u32).prop_map(|(limit, lease)| Step::Claim { limit, lease }),
        5 => prop::collection::vec((index(), ending()), 1..4).prop_map(Step::Settle),
        1 => Just(Step::Again),
        2 => (1..4_u32).prop_map(|lease| Step::Extend { lease }),
        2 => Just(Step::Reap),
        3 => (1..3_u32).prop_map(|minutes| Step::Pass { minutes }),
    ]
}

/// A claim as both stores made it.
#[derive(Clone, Copy, Debug)]
struct Held {
    job: JobId,
    memory: Token,
    postgres: Token,
    may_retry: bool,
}

/// Both stores, and what the script knows of them.
struct Pair<'a> {
    memory: MemoryStore,
    postgres: &'a Store,
    bench: &'a mut Bench,
    now: Instant,
    next_id: u64,
    held: Vec<Held>,
    /// The places of claims that have been settled.
    settled: BTreeSet<usize>,
    last: Option<(Vec<Settlement>, Vec<Settlement>)>,
    /// The store in transactions does not know when the next retry is due.
    knows_next_due: bool,
}

/// What must be equal of a claim: times in whole minutes, since the script's time goes by minutes.
type Seen = (u64, u32, u32, Option<Duration>, u64, u64);

/// What must be equal of a row: number, state, retries, why it was given up, last delay in nanoseconds.
type Row = (i64, String, i32, Option<String>, Option<i64>);

fn seen(claimed: &Claimed) -> (Vec<Seen>, Option<u64>) {
    let minutes = |duration: Duration| duration.as_secs() / 60;
    let claim = |claim: &simq::queue::Claim| {
        let memory = claim.memory;
        (claim.job.0, memory.retries, memory.max_retries, memory.last_delay, minutes(memory.age), minutes(claim.lag))
    };
    (claimed.claims.iter().map(claim).collect(), claimed.next_due.map(|due| (due.as_secs_f64() / 60.0).ceil() as u64))
}

impl<'a> Pair<'a> {
    fn new(postgres: &'a Store, bench: &'a mut Bench, mode: ClaimMode) -> Pair<'a> {
        Pair {
            memory: MemoryStore::new(mode),
            postgres,
            bench,
            now: Instant::START,
            next_id: 0,
            held: vec![],
            settled: BTreeSet::new(),
            last: None,
            knows_next_due: mode == ClaimMode::Lease,
        }
    }

    /// The script's clock ticks at every step, so that what was put in later is younger in both stores; but far less than a minute.
    fn tick(&mut self) {
        self.now = self.now + Duration::from_millis(1);
    }

    async fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.tick();
        match step {
            Step::Insert(jobs) => self.insert(jobs).await,
            Step::Claim { limit, lease } => self.claim(*limit, *lease * MINUTE).await?,
            Step::Settle(_) | Step::Extend { .. } if self.held.is_empty() => {}
            Step::Settle(endings) => {
                let chosen: Vec<(Held, Ending)> = endings.iter().map(|(index, end)| (*index.get(&self.held), *end)).collect();
                self.settle(&chosen).await?;
            }
            Step::Again => {
                if let Some((memory, postgres)) = self.last.clone() {
                    self.send(&memory, &postgres).await?;
                }
            }
            Step::Extend { lease } => {
                let live = self.held.iter().enumerate().filter(|(place, _)| !self.settled.contains(place));
                let chosen: Vec<Held> = live.map(|(_, held)| *held).collect();
                self.extend(&chosen, *lease * MINUTE).await?;
            }
            Step::Reap => {
                let reaped = self.postgres.reap().await.unwrap();
                prop_assert_eq!(self.memory.reap(self.now), reaped);
            }
            Step::Pass { minutes } => {
                self.now = self.now + *minutes * MINUTE;
                self.bench.pass(*minutes * MINUTE).await;
            }
        }
        self.compare_rows().await
    }

    /// A claim of one job, and its end.
    async fn work(&mut self, ending: Ending) -> Result<(), TestCaseError> {
        self.tick();
        let before = self.held.len();
        self.claim(1, MINUTE).await?;
        if let Some(held) = self.held.get(before).copied() {
            self.settle(&[(held, ending)]).await?;
        }
        self.compare_rows().await
    }

    async fn insert(&mut self, jobs: &[(i16, u32)]) {
        let mut new = Vec::new();
        for &(priority, max_retries) in jobs {
            self.next_id += 1;
            self.memory.insert(JobId(self.next_id), MemoryRow::new("email", "{}", priority, max_retries, self.now));
            new.push(New { id: self.next_id, priority, max_retries });
        }
        let mode = if self.knows_next_due { ClaimMode::Lease } else { ClaimMode::Transaction };
        self.bench.insert_for(mode, &new).await;
    }

    async fn claim(&mut self, limit: u32, lease: Duration) -> Result<(), TestCaseError> {
        let (memory, postgres) = (self.memory.claim(self.now, limit, lease), self.postgres.claim(0, limit, lease).await.unwrap());
        let (memory_seen, mut postgres_seen) = (seen(&memory), seen(&postgres));
        if !self.knows_next_due {
            postgres_seen.1 = memory_seen.1;
        }
        prop_assert_eq!(memory_seen, postgres_seen);
        for (memory, postgres) in memory.claims.iter().zip(&postgres.claims) {
            let may_retry = memory.memory.retries < memory.memory.max_retries;
            self.held.push(Held { job: memory.job, memory: memory.token, postgres: postgres.token, may_retry });
        }
        Ok(())
    }

    /// Settles claims old and new, each at most once in one batch: what two different settlements in one batch do is not promised.
    async fn settle(&mut self, endings: &[(Held, Ending)]) -> Result<(), TestCaseError> {
        let (mut memory, mut postgres): (Vec<Settlement>, Vec<Settlement>) = Default::default();
        for (held, ending) in endings {
            if memory.iter().all(|settlement| settlement.job != held.job) {
                let how = how(*ending, held.may_retry);
                memory.push(Settlement { job: held.job, token: held.memory, how: how.clone() });
                postgres.push(Settlement { job: held.job, token: held.postgres, how });
            }
        }
        self.settled
            .extend(self.held.iter().enumerate().filter(|(_, h)| memory.iter().any(|s| s.token == h.memory)).map(|(at, _)| at));
        self.send(&memory, &postgres).await?;
        self.last = Some((memory, postgres));
        Ok(())
    }

    async fn send(&mut self, memory: &[Settlement], postgres: &[Settlement]) -> Result<(), TestCaseError> {
        let a = self.memory.settle(self.now, memory);
        let b = self.postgres.settle(postgres).await.unwrap();
        prop_assert_eq!(self.places(&a.settled, |held| held.memory), self.places(&b.settled, |held| held.postgres), "settled");
        prop_assert_eq!(self.places(&a.lost, |held| held.memory), self.places(&b.lost, |held| held.postgres), "lost");
        Ok(())
    }

    async fn extend(&mut self, chosen: &[Held], lease: Duration) -> Result<(), TestCaseError> {
        let memory: Vec<(JobId, Token)> = chosen.iter().map(|held| (held.job, held.memory)).collect();
        let postgres: Vec<(JobId, Token)> = chosen.iter().map(|held| (held.job, held.postgres)).collect();
        let (a, b) = (self.memory.extend(self.now, &memory, lease), self.postgres.extend(&postgres, lease).await.unwrap());
        prop_assert_eq!(self.places(&a, |held| held.memory), self.places(&b, |held| held.postgres), "lost");
        Ok(())
    }

    /// Each token's place in the order of claiming.
    fn places(&self, tokens: &[Token], of: impl Fn(&Held) -> Token) -> Vec<Option<usize>> {
        tokens.iter().map(|token| self.held.iter().position(|held| of(held) == *token)).collect()
    }

    async fn compare_rows(&mut self) -> Result<(), TestCaseError> {
        let rows: Vec<Row> = sqlx::query_as("SELECT id, status, retries, discarded_why, last_delay_ns FROM jobs ORDER BY id")
            .fetch_all(&mut self.bench.connection)
            .await
            .unwrap();
        let expected = self.memory.rows().iter().map(|(id, row)| {
            let why = row.why.map(|why| if why == Why::Permanent { "permanent" } else { "exhausted" }.to_owned());
            let delay = row.last_delay.map(|delay| delay.as_nanos() as i64);
            (id.0 as i64, row.state_at(self.now).name().to_owned(), row.retries as i32, why, delay)
        });
        prop_assert_eq!(expected.collect::<Vec<_>>(), rows);
        Ok(())
    }
}

/// A policy never retries a job that has no retries left.
fn how(ending: Ending, may_retry: bool) -> How {
    let reason = "status-503".into();
    match ending {
        Ending::Complete => How::Complete,
        Ending::Retry { minutes } if may_retry => How::Retry { after: minutes * MINUTE, reason },
        Ending::Permanent => How::Discard { why: Why::Permanent, reason },
        Ending::Exhausted | Ending::Retry { .. } => How::Discard { why: Why::Exhausted, reason },
        Ending::Release => How::Release,
    }
}

/// A schema in Postgres for many scripts.
struct Stage {
    runtime: tokio::runtime::Runtime,
    bench: Mutex<Bench>,
    mode: ClaimMode,
}

impl Stage {
    fn new(mode: ClaimMode) -> Stage {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bench = Mutex::new(runtime.block_on(Bench::new()));
        Stage { runtime, bench, mode }
    }

    /// Plays so many scripts; returns how many jobs ended them in each state.
    fn check<T: Clone + std::fmt::Debug>(
        &self,
        cases: u32,
        step: impl Strategy<Value = T>,
        play: impl AsyncFn(&mut Pair<'_>, &T) -> Result<(), TestCaseError>,
    ) -> [usize; State::ALL.len()] {
        let ends = RefCell::new([0; State::ALL.len()]);
        let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
        let result = runner.run(&prop::collection::vec(step, 20..40), |script| {
            self.runtime.block_on(async {
                let mut bench = self.bench.lock().await;
                bench.clear().await;
                bench.execute("TRUNCATE receipt").await;
                bench.restart();
                // Its own store for each script: a script that fails leaves claims open, and transactions.
                let store = bench.store(self.mode, 1).await;
                let mut pair = Pair::new(&store, &mut bench, self.mode);
                for (number, step) in script.iter().enumerate() {
                    let played = play(&mut pair, step).await;
                    played.map_err(|error| TestCaseError::fail(format!("step {}: {error}", number + 1)))?;
                }
                pair.memory.rows().values().for_each(|row| ends.borrow_mut()[row.state_at(pair.now) as usize] += 1);
                store.close().await;
                Ok(())
            })
        });
        result.unwrap_or_else(|error| panic!("{error}"));
        ends.into_inner()
    }
}

#[test]
fn both_stores_answer_every_script_alike() {
    let ends = Stage::new(ClaimMode::Lease).check(48, step(), async |pair, step| pair.play(step).await);
    assert!(ends.iter().all(|count| *count > 0), "the scripts led jobs to every state: {ends:?}");
}

/// In transaction mode a claim is not seen before its end, so each is settled before the next step.
#[derive(Clone, Debug)]
enum Turn {
    Step(Step),
    Work(Ending),
}

#[test]
fn a_store_that_claims_in_transactions_answers_like_the_reference_too() {
    let turn = prop_oneof![
        2 => prop::collection::vec((-1..2_i16, 0..3_u32), 1..5).prop_map(|jobs| Turn::Step(Step::Insert(jobs))),
        2 => (1..3_u32).prop_map(|minutes| Turn::Step(Step::Pass { minutes })),
        5 => ending().prop_map(Turn::Work),
    ];
    let stage = Stage::new(ClaimMode::Transaction);
    stage.check(24, turn, async |pair, turn| match turn {
        Turn::Step(step) => pair.play(step).await,
        Turn::Work(ending) => pair.work(*ending).await,
    });
}
