//! Chaos in virtual time: what the plan of [`crate::scenario::chaos`] says, done to workers and to the store's connections.
//!
//! What is asked of a database that is away fails at once; what was under way when it went fails too, and was carried out if its moment had
//! come before. A snapshot that somebody holds costs nothing here, since there are no dead rows. How long a server takes to come back is the
//! profile's.

use super::post::Post;
use super::world::{Next, World};
use crate::journal::Sink;
use crate::metrics::Blow;
use crate::scenario::chaos::What;
use crate::time::Instant;
use crate::worker::Event;

impl<S: Sink> World<'_, S> {
    /// The first blow is on its way.
    pub(super) fn threaten(&mut self) {
        if let Some(strike) = self.strikes.get(self.blows.len()) {
            let at = self.timer(self.calendar.now(), strike.at);
            self.calendar.plan(at, Next::Strike);
        }
    }

    /// A blow falls, unless the run is over.
    pub(super) fn strike(&mut self, now: Instant) {
        if self.leaving.is_some() {
            return;
        }
        let strike = self.strikes[self.blows.len()].clone();
        let mut blow = Blow::of(&strike, now);
        for place in &strike.places {
            let post = &self.posts[*place as usize];
            let hit = if matches!(strike.what, What::KillWorkers { .. }) { post.empty_until.is_none() } else { post.is_up() };
            if hit && !post.done {
                blow.workers.push(post.worker.id());
            }
        }
        blow.hit = blow.workers.len() as u64;
        blow.until = strike.what.lasts().map(|lasts| now + lasts);
        for place in strike.places {
            match strike.what {
                What::KillWorkers { lasts, .. } => self.kill(now, place, lasts.map(|lasts| strike.at + lasts)),
                What::PauseWorkers { lasts, .. } => self.hold_still(place, strike.at + lasts),
                What::SkewClock { by, .. } => self.relieve(place, by.ahead()),
                What::CutConnections | What::RestartDatabase { .. } | What::HoldTransaction { .. } => {}
            }
        }
        match strike.what {
            What::CutConnections => {
                blow.hit = self.cut(now, now);
                blow.until = Some(now);
            }
            What::RestartDatabase { .. } => {
                let back = now + self.profile.restart();
                self.cut(now, back);
                (blow.hit, blow.until) = (1, Some(back));
            }
            What::HoldTransaction { .. } => blow.hit = 1,
            What::KillWorkers { .. } | What::PauseWorkers { .. } | What::SkewClock { .. } => {}
        }
        self.blows.push(blow);
        self.threaten();
    }

    /// Dies where it is. What it has sent to the store is carried out, or not; nobody hears the answer.
    fn kill(&mut self, now: Instant, place: u32, back: Option<Instant>) {
        let back = back.unwrap_or(Instant::FAR);
        let post = &mut self.posts[place as usize];
        if let Some(until) = &mut post.empty_until {
            // Nobody is there to be hit again, but the place stays empty for as long as the longer blow says.
            *until = back.max(*until);
            self.calendar.plan(back, Next::Fill(place));
            return;
        }
        if post.done {
            return;
        }
        (post.empty_until, post.still_until, post.woken) = (Some(back), None, Instant::FAR);
        post.kept.clear();
        let id = post.worker.id();
        self.died.push(id);
        for freed in self.database.abandon(now, id) {
            self.send(now, freed);
        }
        self.bell.moved(place, false);
        self.calendar.plan(back, Next::Fill(place));
        // It may have been told of work that nobody else knows of.
        self.ring();
    }

    /// A place is filled again, by a new worker that knows nothing of the old one's claims.
    pub(super) fn fill(&mut self, now: Instant, place: u32) {
        let post = &self.posts[place as usize];
        if post.empty_until.is_some_and(|until| until <= now) && self.leaving.is_none() {
            self.follow(place);
        }
    }

    /// The next worker takes the place.
    fn follow(&mut self, place: u32) {
        let post = &self.posts[place as usize];
        let ahead = post.next_ahead.unwrap_or(post.ahead);
        let id = post.worker.id() + self.posts.len() as u32;
        let worker = self.recruits.worker(id, ahead);
        self.posts[place as usize] = Post::of(worker, ahead);
        self.step(place, Event::Started);
    }

    /// Finishes in order, to be followed by one with another clock.
    fn relieve(&mut self, place: u32, ahead: std::time::Duration) {
        let post = &mut self.posts[place as usize];
        if !post.is_up() || post.done {
            return;
        }
        post.next_ahead = Some(ahead);
        self.step(place, Event::Drain);
        self.relieved(place);
    }

    /// Lets the next one come, if who stood there has finished and one is to come.
    pub(super) fn relieved(&mut self, place: u32) {
        let post = &self.posts[place as usize];
        if post.next_ahead.is_some() && post.worker.is_idle() && self.leaving.is_none() {
            self.follow(place);
        }
    }

    fn hold_still(&mut self, place: u32, until: Instant) {
        let post = &mut self.posts[place as usize];
        if post.is_up() && !post.done {
            post.still_until = Some(until);
            self.bell.moved(place, false);
            self.calendar.plan(until, Next::Resume(place));
        }
    }

    /// It goes on, with what came in while it stood still; at the end of a run it does so at once.
    pub(super) fn resume(&mut self, place: u32) {
        let post = &mut self.posts[place as usize];
        if post.still_until.take().is_none() {
            return;
        }
        // What was to wake it may have passed in vain.
        post.woken = Instant::FAR;
        let kept = std::mem::take(&mut post.kept);
        self.step(place, Event::Woke);
        for event in kept {
            self.step(place, event);
        }
    }
}
