//! What does it cost to ask the downstream model? `Downstream::admit` with 16 busy servers and a queue that stays half full,
//! beside the pop and push on a heap of 16 that any such model needs, and beside that with the two draws of a call.

mod beside;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

use beside::{Pair, time};
use criterion::Criterion;
use simq::call::{Call, Label, Reply};
use simq::dist::Dist;
use simq::downstream::{Discipline, Downstream, Settings};
use simq::job::JobId;
use simq::rng::{Seed, Stream};
use simq::time::Instant;

const SERVERS: u32 = 16;
const QUEUE: u32 = 64;
const WORK: Duration = Duration::from_millis(10);
/// One call in this time is what the servers can do.
const GAP: Duration = Duration::from_micros(10_000 / SERVERS as u64);

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("downstream");
    let mut traffic = Traffic::new();
    let mut heap: BinaryHeap<Reverse<u64>> = (0..u64::from(SERVERS)).map(Reverse).collect();
    let bare = Pair::bench(&mut group, "admit", "a bare heap's pop and push", |times| {
        [traffic.calls(times), time(times, |n| turn(&mut heap, n))]
    });
    let seed = black_box(Seed(1));
    let drawn = Pair::bench(&mut group, "admit again", "a heap's pop and push with two keyed draws", |times| {
        let limit = time(times, |n| {
            let work = seed.draw(Stream::Service, JobId(n), 1).unit();
            let fails = seed.draw(Stream::Fault, JobId(n), 1).happens(0.01);
            (turn(&mut heap, n), work, fails)
        });
        [traffic.calls(times), limit]
    });
    group.finish();
    criterion.final_summary();
    [bare, drawn].iter().flatten().for_each(|pair| pair.tell(None));
}

/// The earliest leaves, and comes back later than all others.
fn turn(heap: &mut BinaryHeap<Reverse<u64>>, n: u64) -> u64 {
    let Reverse(first) = heap.pop().expect("the heap is never empty");
    heap.push(Reverse(first + u64::from(SERVERS) + (n & 3)));
    first
}

/// Calls at exactly the rate that the servers can bear, behind as many as fill half of the queue.
struct Traffic {
    downstream: Downstream,
    now: Instant,
    next: u64,
    last: Reply,
}

impl Traffic {
    fn new() -> Traffic {
        // Narrow, so that the queue's length does not wander; sampled all the same.
        let latency = Dist::LogNormal { median: WORK, p99: WORK + WORK / 1000 };
        let settings = Settings {
            servers: SERVERS,
            queue: QUEUE,
            latency,
            error_rate: 0.01,
            client_timeout: Duration::from_secs(1),
            outages: vec![],
            discipline: Discipline::Fifo,
            shed_after: None,
            collapse: None,
            users: None,
        };
        let mut traffic =
            Traffic { downstream: Downstream::new(settings, Seed(1)), now: Instant::START, next: 0, last: Reply::Silence };
        // The servers fill one by one, so that they become free one by one; then the queue, at one blow.
        for _ in 0..SERVERS {
            traffic.call();
        }
        let now = traffic.now;
        for _ in 0..QUEUE / 2 {
            traffic.now = now;
            traffic.call();
        }
        traffic
    }

    fn call(&mut self) -> Reply {
        let call = Call { job: JobId(self.next), attempt: 1, malformed: false, route: Label::NONE, caller: Label::NONE };
        self.last = self.downstream.admit(self.now, &call);
        self.next += 1;
        self.now = self.now + GAP;
        self.last
    }

    fn calls(&mut self, times: u64) -> Duration {
        let took = time(times, |_| self.call());
        self.check();
        took
    }

    /// The queue is neither empty nor full.
    fn check(&self) {
        let Reply::Answer { at, .. } = self.last else { panic!("there is no outage: {:?}", self.last) };
        let waited = at.since(self.now).saturating_sub(WORK);
        let ahead = waited.as_nanos() / GAP.as_nanos();
        assert!((8..56).contains(&ahead), "{ahead} calls wait: the bench has left its working point");
    }
}
