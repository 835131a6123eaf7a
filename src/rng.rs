//! Chance, keyed and not streamed.
//!
//! A draw depends on the seed, on what it is for, on the job and on the attempt, and on nothing else: the tuple *is* the
//! key of a ChaCha8 generator. Threads may interleave as they like and policies may make different numbers of calls:
//! the same job's same attempt meets the same luck (common random numbers), in virtual time and in real time alike.
//! So there is no generator to store, share or clone: ask for a fresh [`Draw`] each time.

mod block;

use block::Blocks;
use rand::TryRng;
use serde::{Deserialize, Serialize};

use crate::job::JobId;

/// What all randomness of a run comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// What a draw is for. Each has its own numbers; add at the end, since the order is part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// When a job arrives.
    Arrival = 1,
    /// Whether a job is malformed.
    Malformed = 2,
    /// A retry's jitter.
    Jitter = 3,
    /// How long the downstream works on a call.
    Service = 4,
    /// Whether the downstream fails a call.
    Fault = 5,
    /// A worker's phase: when in its period it polls, and how long it waits after a database error.
    Phase = 6,
    /// How much longer a circuit breaker stays open.
    Breaker = 8,
    /// Whether a fault strikes a call.
    Strike = 20,
    /// Whether a job is marked by a permanent fault; the attempt is no part of the key.
    Mark = 21,
    /// When ordinary users call.
    Users = 22,
    /// Which workers are struck by chaos: the job is the blow, the attempt the worker's place.
    Chaos = 30,
    /// In virtual time: how long statements wait, one after the other.
    Store = 31,
    /// In virtual time: how long calls are on their way, one after the other.
    Wire = 32,
    /// In virtual time: how late timers run, one after the other.
    Timer = 33,
    /// The resamples of a bootstrap.
    Resample = 40,
}

impl Seed {
    /// A fresh generator for this purpose, job and attempt. Equal keys give equal numbers, on every platform.
    #[inline]
    pub fn draw(self, stream: Stream, job: JobId, attempt: u32) -> Draw {
        let halves = |number: u64| [number as u32, (number >> 32) as u32];
        let ([a, b], [c, d]) = (halves(self.0), halves(job.0));
        Draw(Blocks::of([a, b, stream as u32, 0, c, d, attempt, 0]))
    }

    /// A seed of its own for the `n`-th of several like things, such as faults of one downstream.
    pub fn part(self, n: u32) -> Seed {
        Seed(self.0 ^ u64::from(n).wrapping_add(1).wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    /// The seed of repetition `n` (from 1): the first is the seed itself.
    pub fn repetition(self, n: u32) -> Seed {
        Seed(self.0.wrapping_add(u64::from(n.saturating_sub(1)).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }
}

/// The numbers of one draw. Not `Clone`: two users of one sequence is the fault it exists to prevent. It costs next to nothing until it is
/// asked for a number.
#[derive(Debug)]
pub struct Draw(Blocks);

impl Draw {
    /// Uniform on [0, 1), with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform on [low, high); `low` where the interval is empty.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        if high > low { low + self.unit() * (high - low) } else { low }
    }

    /// The draw that another attempt of the same job met, or will meet: a key can be asked again, so a policy that builds on
    /// earlier luck needs nobody to remember it.
    pub fn sibling(&self, attempt: u32) -> Draw {
        let [a, b, stream, zero, c, d, _, last] = self.0.key();
        Draw(Blocks::of([a, b, stream, zero, c, d, attempt, last]))
    }

    /// The draw that *every* job meets at this attempt: what a generator that is copied into each request, or a list drawn once,
    /// comes to. There to show that fault, not to use it.
    pub fn common(&self, attempt: u32) -> Draw {
        let [a, b, stream, zero, _, _, _, last] = self.0.key();
        Draw(Blocks::of([a, b, stream, zero, 0, 0, attempt, last]))
    }

    /// Whether an event of this probability happens. What is certain either way takes no number.
    pub fn happens(&mut self, probability: f64) -> bool {
        probability >= 1.0 || (probability > 0.0 && self.unit() < probability)
    }
}

impl TryRng for Draw {
    type Error = std::convert::Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.0.next_u32())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Self::Error> {
        for bytes in dst.chunks_mut(4) {
            bytes.copy_from_slice(&self.0.next_u32().to_le_bytes()[..bytes.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_decides_the_numbers() {
        let first = Seed(7).draw(Stream::Jitter, JobId(3), 2).unit();
        assert_eq!(first, Seed(7).draw(Stream::Jitter, JobId(3), 2).unit());
        for other in [
            Seed(8).draw(Stream::Jitter, JobId(3), 2).unit(),
            Seed(7).draw(Stream::Service, JobId(3), 2).unit(),
            Seed(7).draw(Stream::Jitter, JobId(4), 2).unit(),
            Seed(7).draw(Stream::Jitter, JobId(3), 3).unit(),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn a_sibling_is_the_same_draw_as_if_asked_for_directly() {
        let here = Seed(7).draw(Stream::Jitter, JobId(3), 5);
        assert_eq!(here.sibling(2).unit(), Seed(7).draw(Stream::Jitter, JobId(3), 2).unit());
        let there = Seed(7).draw(Stream::Jitter, JobId(4), 5);
        assert_eq!(here.common(1).unit(), there.common(1).unit());
        assert_ne!(here.common(1).unit(), here.common(2).unit());
    }

    #[test]
    fn the_generator_is_pinned() {
        let nanos = (Seed(1).draw(Stream::Arrival, JobId(1), 1).unit() * 1e9) as u64;
        assert_eq!(nanos, 247_781_210, "another generator would change every published figure");
    }

    #[test]
    fn a_unit_stays_below_one_and_spreads() {
        let units: Vec<f64> = (0..10_000).map(|job| Seed(1).draw(Stream::Jitter, JobId(job), 1).unit()).collect();
        assert!(units.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = units.iter().sum::<f64>() / units.len() as f64;
        assert!((mean - 0.5).abs() < 4.0 * (1.0 / 12.0_f64).sqrt() / 100.0, "{mean}");
    }
}
