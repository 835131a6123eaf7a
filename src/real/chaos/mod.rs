//! Chaos, carried out: what the plan of [`crate::scenario::chaos`] says, on real workers and a real database.
//!
//! ```text
//!  plan ──► conductor ──Order──► place ──drives──► worker, worker, …      one after another, each with a number of its own
//!               │                  └─► Marks: whom it really hit
//!               ├──pg_terminate_backend, BEGIN──► Postgres
//!               └──Restart──► the guard of the throwaway server
//! ```
//! * A worker that is killed is dropped where it is, with its statements and calls under way: their connections break off, as a process's
//!   do. Whoever takes its place is a new process: it has another number, since the store knows a client's last settlement by it.
//! * A worker that stands still handles nothing; what it had asked for goes on, and the answers wait for it.
//! * A worker with a wrong clock sees nothing but that clock; its journal is kept in the run's time.
//! * At the end of a run everything that lasts is ended, and a database that is being restarted is waited for.

mod conductor;
mod database;
mod marks;
mod place;
mod reins;

pub(super) use conductor::Conductor;
pub(super) use place::Place;
pub(super) use reins::{Order, Reins, Time};
