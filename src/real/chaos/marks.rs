//! What really happened, and to whom: the blows as the report shows them.

use std::sync::Mutex;

use crate::metrics::Blow;
use crate::scenario::chaos::Strike;
use crate::time::Instant;

/// The blows that have fallen so far.
#[derive(Debug, Default)]
pub(in crate::real) struct Marks(Mutex<Vec<Blow>>);

impl Marks {
    /// A blow falls; returns its place.
    pub(super) fn begin(&self, strike: &Strike, at: Instant) -> usize {
        let mut blows = self.lock();
        blows.push(Blow::of(strike, at));
        blows.len() - 1
    }

    /// It hit this worker.
    pub(super) fn hit(&self, blow: usize, worker: u32) {
        self.change(blow, |blow| {
            blow.workers.push(worker);
            blow.hit += 1;
        });
    }

    /// It hit so many other things.
    pub(super) fn count(&self, blow: usize, hit: u64) {
        self.change(blow, |blow| blow.hit = hit);
    }

    /// It is over.
    pub(super) fn end(&self, blow: usize, at: Instant) {
        self.change(blow, |blow| blow.until = Some(at));
    }

    /// It did not do what it should.
    pub(super) fn fail(&self, blow: usize, why: String) {
        self.change(blow, |blow| blow.failed = Some(why));
    }

    /// All of them, in order of time.
    pub(super) fn take(&self) -> Vec<Blow> {
        let mut blows = std::mem::take(&mut *self.lock());
        blows.iter_mut().for_each(|blow| blow.workers.sort_unstable());
        blows
    }

    fn change(&self, blow: usize, change: impl FnOnce(&mut Blow)) {
        if let Some(blow) = self.lock().get_mut(blow) {
            change(blow);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Blow>> {
        self.0.lock().expect("nobody panics while holding it")
    }
}
