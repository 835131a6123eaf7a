//! May a run take place on this server? Asked before anything is made there, so that a missing right, too few connections or a pooler in
//! between is one clear sentence, and not a failure in mid-run.
//!
//! A run needs its connections to be *sessions* that keep what they are opened with: `search_path`, which leads to the run's own schema, and
//! LISTEN. A pooler of transactions hands each to whatever server connection is free; two sessions show that: while one holds a transaction
//! open, the other's next statement runs elsewhere. A pooler of sessions may drop the settings that come with the start (PgBouncer does):
//! then the run's tables would be made in somebody else's schema. Everything is asked in the simple protocol, which all poolers pass on.
//!
//! What a role needs is in `grants.sql`, which the tests carry out.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection, Executor};

use super::{Error, connect};

/// How often a full server is looked at, and how long in between: sessions of the run before may still be on their way out.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What a server says of its connections, for the role that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    /// The most that this role may have on the server, the database and by itself.
    limits: [Limit; 3],
}

/// A limit, and how much of it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    /// Whose it is.
    of: &'static str,
    /// Negative: there is none.
    most: i64,
    taken: i64,
}

impl Room {
    /// The limit that leaves least, if any leaves fewer than `needed`.
    fn lacks(&self, needed: u32) -> Option<(Limit, i64)> {
        let bounded = self.limits.iter().filter(|limit| limit.most >= 0);
        let left = bounded.map(|limit| (*limit, (limit.most - limit.taken).max(0)));
        left.min_by_key(|(_, left)| *left).filter(|(_, left)| *left < i64::from(needed))
    }
}

/// Sees whether this server gives a run what it needs, with so many connections.
///
/// # Errors
/// [`Error::Unreachable`], [`Error::TooOld`], [`Error::MayNot`], [`Error::Crowded`], [`Error::Pooled`].
pub async fn admits(database: &PgConnectOptions, needed: u32) -> Result<(), Error> {
    let mut connection = connect(database).await?;
    // A server of the file system has no pooler before it.
    if database.get_socket().is_none() {
        keeps_sessions(database).await?;
    }
    may_create(&mut connection).await?;
    let mut looks = 0;
    while let Some((limit, left)) = room(&mut connection).await?.lacks(needed) {
        looks += 1;
        if looks == LOOKS {
            return Err(Error::Crowded { needed, left, of: limit.of, most: limit.most });
        }
        tokio::time::sleep(PAUSE).await;
    }
    connection.close().await?;
    Ok(())
}

async fn may_create(connection: &mut PgConnection) -> Result<(), Error> {
    let (may, user, database): (bool, String, String) = sqlx::query_as(
        "SELECT has_database_privilege(current_database(), 'CREATE'), current_user::text, current_database()::text",
    )
    .fetch_one(connection)
    .await?;
    if may { Ok(()) } else { Err(Error::MayNot { user, database, right: "CREATE" }) }
}

async fn room(connection: &mut PgConnection) -> Result<Room, Error> {
    // Sessions of others show less of themselves; that they are in a database shows.
    let row: [i64; 6] = sqlx::query_as::<_, (i64, i64, i64, i64, i64, i64)>(
        "WITH client AS (
             SELECT datname, usename FROM pg_stat_activity
             WHERE datname IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend' AND pid <> pg_backend_pid()
         )
         SELECT
             (current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0 ELSE
                 current_setting('superuser_reserved_connections')::int
                 + coalesce(current_setting('reserved_connections', true)::int, 0) END)::bigint,
             (SELECT count(*) FROM client),
             (SELECT datconnlimit FROM pg_database WHERE datname = current_database())::bigint,
             (SELECT count(*) FROM client WHERE datname = current_database()),
             rolconnlimit::bigint,
             (SELECT count(*) FROM client WHERE usename = current_user)
         FROM pg_roles WHERE rolname = current_user",
    )
    .fetch_one(connection)
    .await?
    .into();
    let [server, on_server, database, in_database, role, of_role] = row;
    let limit = |of, most, taken| Limit { of, most, taken };
    Ok(Room {
        limits: [
            limit("the server", server, on_server),
            limit("the database", database, in_database),
            limit("the role", role, of_role),
        ],
    })
}

async fn keeps_sessions(database: &PgConnectOptions) -> Result<(), Error> {
    let mut one = PgConnection::connect_with(database).await.map_err(unreachable)?;
    let mut other = PgConnection::connect_with(database).await.map_err(unreachable)?;
    let (first, _) = probe(&mut one).await?;
    other.execute(AssertSqlSafe("BEGIN")).await?;
    let _holds = probe(&mut other).await?;
    let (again, _) = probe(&mut one).await?;
    other.execute(AssertSqlSafe("ROLLBACK")).await?;
    if first != again {
        return Err(Error::Pooled("each transaction may run on another server connection"));
    }
    let named = database.clone().options([("search_path", PROBE)]);
    let mut named = PgConnection::connect_with(&named).await.map_err(unreachable)?;
    let (_, path) = probe(&mut named).await?;
    if path == PROBE { Ok(()) } else { Err(Error::Pooled(FORGETS)) }
}

/// A search path that nobody else would set.
const PROBE: &str = "simq_probe";
const FORGETS: &str = "it does not pass the settings of a session on";

/// Which server process answers, and what it knows of the session. In the simple protocol, which every pooler passes on.
async fn probe(connection: &mut PgConnection) -> Result<(i32, String), Error> {
    use sqlx::Row;
    let statement = sqlx::raw_sql("SELECT pg_backend_pid()::text AS pid, current_setting('search_path') AS path");
    let row = statement.fetch_one(connection).await?;
    let pid: String = row.try_get("pid")?;
    Ok((pid.parse().unwrap_or_default(), row.try_get("path")?))
}

/// A connection that was refused: by a pooler that does not know what sqlx asks of a session, or for want of a right.
pub(super) fn unreachable(error: sqlx::Error) -> Error {
    let refusal =
        error.as_database_error().map(|error| (error.code().unwrap_or_default().into_owned(), error.message().to_owned()));
    match refusal {
        Some((_, message)) if message.contains("unsupported startup parameter") => Error::Pooled(FORGETS),
        Some((code, _)) if code == "42501" => Error::MayNotConnect(error),
        _ => Error::Unreachable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_is_named() {
        let limit = |of, most, taken| Limit { of, most, taken };
        let room = Room { limits: [limit("the server", 97, 90), limit("the database", -1, 90), limit("the role", 10, 6)] };
        assert_eq!(room.lacks(4), None);
        assert_eq!(room.lacks(5), Some((limit("the role", 10, 6), 4)));
        let full = Room { limits: [limit("the server", 97, 99), limit("the database", 3, 0), limit("the role", -1, 0)] };
        assert_eq!(full.lacks(1), Some((limit("the server", 97, 99), 0)), "more than allowed may be there after a reload");
    }
}
