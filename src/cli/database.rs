//! The database of a run: one that the user lends, or a throwaway server of simq's own.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;

use super::Exit;
use super::exit::Code;
use crate::real::machine;
use crate::real::pg::throwaway::{Options, Restarter, Throwaway};
use crate::real::pg::{self, leftovers};

/// A database to work in, until it is given back.
pub(super) struct Lent {
    pub(super) options: PgConnectOptions,
    server: Option<Throwaway>,
    name: String,
    origin: String,
}

impl Lent {
    /// The database of the URL, or a fresh throwaway server.
    pub(super) async fn borrow(url: Option<&str>, durable: bool, tell: &dyn Fn(&str)) -> anyhow::Result<Lent> {
        let name = run_name();
        let Some(url) = url else { return Lent::throw_away(durable, name, tell).await };
        let options = pg::parse_url(url).context(Code(Exit::Usage))?;
        let mut connection = pg::connect(&options).await.context(Code(Exit::Environment))?;
        let origin = format!("{}/{}", options.get_host(), options.get_database().unwrap_or("(default)"));
        tell(&format!("database: {origin}, in schemas named {name}_…"));
        for left in leftovers(&mut connection).await.context(Code(Exit::Environment))? {
            tell(&format!(
                "note: schema {left} is there from an earlier run, or one under way; if you do not need it: DROP SCHEMA {left} CASCADE"
            ));
        }
        Ok(Lent { options, server: None, name, origin })
    }

    async fn throw_away(durable: bool, name: String, tell: &dyn Fn(&str)) -> anyhow::Result<Lent> {
        let server = Throwaway::start(Options { durable, ..Options::default() }).await.context(Code(Exit::Environment))?;
        tell(&super::postgres::figures(server.startup()));
        let origin = super::postgres::figures(server.startup());
        Ok(Lent { options: server.connect_options(), server: Some(server), name, origin })
    }

    /// Whether the server is simq's own.
    pub(super) fn is_own(&self) -> bool {
        self.server.is_some()
    }

    /// What the names of this run's schemas begin with.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What restarts the server, if it is simq's own.
    pub(super) fn restarter(&self) -> Option<Restarter> {
        self.server.as_ref().map(Throwaway::restarter)
    }

    /// The schema for a policy's repetition.
    pub(super) fn schema(&self, policy: usize, repetition: u32) -> String {
        format!("{}_p{}_r{repetition}", self.name, policy + 1)
    }

    /// The circumstances to report: simq, the machine, the server and its settings.
    pub(super) async fn facts(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let mut connection = pg::connect(&self.options).await.context(Code(Exit::Environment))?;
        let mut facts = pg::settings(&mut connection).await.context(Code(Exit::Environment))?;
        facts.extend(machine::facts());
        let kind = if self.is_own() { "throwaway" } else { "lent by the user" };
        facts.insert("postgres.kind".into(), kind.into());
        facts.insert("postgres.origin".into(), self.origin.clone());
        facts.insert("simq.version".into(), env!("CARGO_PKG_VERSION").into());
        facts.insert("simq.build".into(), if cfg!(debug_assertions) { "debug" } else { "release" }.into());
        facts.insert("run.started".into(), humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since_epoch()).to_string());
        Ok(facts)
    }

    /// Resolves if the throwaway server goes away by itself; never for a lent database.
    pub(super) async fn ended(&mut self) -> anyhow::Error {
        match &mut self.server {
            Some(server) => anyhow::Error::new(server.ended().await).context(Code(Exit::Environment)),
            None => std::future::pending().await,
        }
    }

    /// Stops the throwaway server and removes it.
    pub(super) async fn give_back(self) -> anyhow::Result<()> {
        match self.server {
            Some(server) => server.stop().await.context(Code(Exit::Environment)),
            None => Ok(()),
        }
    }
}

/// A name that no other run has: the second it started, the process, and the nanoseconds.
fn run_name() -> String {
    let now = since_epoch();
    format!("simq_{}_{}_{:x}", now.as_secs(), std::process::id(), now.subsec_nanos())
}

/// The time of day, for names and dates; no figure depends on it.
#[expect(clippy::disallowed_types, reason = "a report says when it was made")]
fn since_epoch() -> Duration {
    use std::time::SystemTime;
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
