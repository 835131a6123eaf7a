//! The conductor: strikes when the plan says so, and ends what lasts when the run does.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::database::Database;
use super::marks::Marks;
use super::reins::{Order, Reins, Sent, Time};
use crate::metrics::Blow;
use crate::real::clock::Clock;
use crate::real::pg::Schema;
use crate::real::pg::throwaway::Restarter;
use crate::scenario::chaos::{Strike, What};

/// Whoever carries out a plan.
#[derive(Debug)]
pub(in crate::real) struct Conductor {
    places: Vec<mpsc::UnboundedSender<Sent>>,
    marks: Arc<Marks>,
    over: watch::Sender<bool>,
    striking: JoinSet<()>,
}

impl Conductor {
    /// A conductor of so many places, and the reins of each.
    pub(in crate::real) fn of(places: u32) -> (Conductor, Vec<Reins>) {
        let marks = Arc::new(Marks::default());
        let rein = |_| {
            let (sender, orders) = mpsc::unbounded_channel();
            (sender, Reins { time: Time::default(), orders: Some(orders), marks: marks.clone(), next: None })
        };
        let (senders, reins) = (0..places).map(rein).unzip();
        (Conductor { places: senders, marks, over: watch::channel(false).0, striking: JoinSet::new() }, reins)
    }

    /// Begins to carry out the plan.
    pub(in crate::real) fn start(&mut self, plan: Vec<Strike>, clock: Clock, schema: &Schema, restarter: Option<Restarter>) {
        if plan.is_empty() {
            return;
        }
        let (places, marks) = (std::mem::take(&mut self.places), self.marks.clone());
        let database = Arc::new(Database { schema: schema.clone(), restarter, clock, over: self.over.subscribe() });
        self.striking.spawn(async move {
            let mut lasting = JoinSet::new();
            for strike in plan {
                let mut over = database.over.clone();
                tokio::select! {
                    () = clock.sleep_until(strike.at) => {}
                    _ = over.wait_for(|over| *over) => break,
                }
                let blow = marks.begin(&strike, clock.now());
                command(&strike, blow, &places, &marks);
                lasting.spawn(deed(strike, blow, database.clone(), marks.clone()));
            }
            while lasting.join_next().await.is_some() {}
        });
    }

    /// No more blows; what lasts is ended, and a restart is waited for. Returns what befell the run.
    pub(in crate::real) async fn stop(&mut self) -> Vec<Blow> {
        let _ = self.over.send(true);
        while self.striking.join_next().await.is_some() {}
        self.marks.take()
    }
}

/// What is for workers is sent to their places.
fn command(strike: &Strike, blow: usize, places: &[mpsc::UnboundedSender<Sent>], marks: &Marks) {
    let (order, skew) = match strike.what {
        What::KillWorkers { lasts, .. } => (Order::Die { back: lasts.map(|lasts| strike.at + lasts) }, None),
        What::PauseWorkers { lasts, .. } => (Order::Pause { until: strike.at + lasts }, None),
        What::SkewClock { by, .. } => (Order::Follow, Some(by)),
        What::CutConnections | What::RestartDatabase { .. } | What::HoldTransaction { .. } => return,
    };
    for place in &strike.places {
        // A place that is left for good takes no orders.
        let _ = places[*place as usize].send(Sent { blow, order, skew });
    }
    if let Some(lasts) = strike.what.lasts() {
        marks.end(blow, strike.at + lasts);
    }
}

/// What is done to the database.
async fn deed(strike: Strike, blow: usize, database: Arc<Database>, marks: Arc<Marks>) {
    let done = match strike.what {
        What::CutConnections => database.cut().await,
        What::RestartDatabase { mode } => database.restart(mode).await,
        What::HoldTransaction { .. } => database.hold(strike.at + strike.what.lasts().unwrap_or_default()).await,
        What::KillWorkers { .. } | What::PauseWorkers { .. } | What::SkewClock { .. } => return,
    };
    match done {
        Ok(hit) => marks.count(blow, hit),
        Err(why) => marks.fail(blow, why),
    }
    marks.end(blow, database.clock.now());
}
