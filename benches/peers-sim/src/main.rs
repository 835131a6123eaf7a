//! M/M/4 at 80 % with nexosim, on one thread: two events for each job, its arrival and its departure.

use std::collections::VecDeque;
use std::time::Duration;

use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::EventSource;
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

const RATE: f64 = 3.2;
const SERVERS: u32 = 4;

/// Jobs arrive, wait for one of four servers in order, and depart.
#[derive(Serialize, Deserialize)]
struct Queue {
    left: u64,
    busy: u32,
    waiting: VecDeque<MonotonicTime>,
    waited: f64,
    chance: u64,
}

#[Model]
impl Queue {
    #[nexosim(schedulable)]
    fn arrive(&mut self, (): (), cx: &Context<Self>) {
        self.left -= 1;
        if self.busy < SERVERS {
            self.busy += 1;
            self.serve(cx);
        } else {
            self.waiting.push_back(cx.time());
        }
        if self.left > 0 {
            let gap = self.exponential() / RATE;
            cx.schedule_event(Duration::from_secs_f64(gap), schedulable!(Self::arrive), ()).expect("it lies ahead");
        }
    }

    #[nexosim(schedulable)]
    fn depart(&mut self, (): (), cx: &Context<Self>) {
        match self.waiting.pop_front() {
            Some(since) => {
                self.waited += cx.time().duration_since(since).as_secs_f64();
                self.serve(cx);
            }
            None => self.busy -= 1,
        }
        if self.left == 0 && self.busy == 0 {
            println!("in all they waited for {:.0} s", self.waited);
        }
    }

    fn serve(&mut self, cx: &Context<Self>) {
        let work = self.exponential();
        cx.schedule_event(Duration::from_secs_f64(work), schedulable!(Self::depart), ()).expect("it lies ahead");
    }

    /// Of mean 1, never zero; SplitMix64 (Steele, Lea, Flood, 2014).
    fn exponential(&mut self) -> f64 {
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let unit = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - unit).ln()).max(1e-9)
    }
}

fn spent() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let jobs: u64 = std::env::args().nth(1).map_or(500_000, |text| text.parse().expect("a number of jobs"));
    let queue = Queue { left: jobs, busy: 0, waiting: VecDeque::new(), waited: 0.0, chance: 7 };
    let mailbox = Mailbox::new();
    let mut bench = SimInit::with_num_threads(1);
    let first = EventSource::new().connect(Queue::arrive, &mailbox).register(&mut bench);
    let mut simulation = bench.add_model(queue, mailbox, "queue").init(MonotonicTime::EPOCH).expect("it starts");
    let before = spent();
    simulation.process_event(&first, ()).expect("it is taken");
    simulation.run().expect("it ends");
    println!("nexosim: {:.0} events per processor second", 2.0 * jobs as f64 / (spent() - before));
}
