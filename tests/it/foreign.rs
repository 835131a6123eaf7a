//! Somebody else's Postgres: the rights that simq documents are enough, and what is missing is said in one sentence.

use std::fs;
use std::path::Path;

use simq::real::{End, Error};
use simq::scenario::Scenario;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};

use crate::cluster;
use crate::play::{plan, scenario};

const GRANTS: &str = include_str!("../../src/real/pg/grants.sql");

fn small() -> Scenario {
    scenario(
        "[[jobs]]\ntype = 'email'\ncount = 60\nmax_retries = 9\narrival = 'constant'\nrate = '120/s'\n\
         [workers]\ncount = 2\nslots = 4\nconnections = 4\nlease = '2s'\n\
         [downstream]\nservers = 50\nerror_rate = 0.2\nlatency = { kind = 'constant', value = '5ms' }\nclient_timeout = '1s'\n\
         [policy.steady]\nkind = 'constant'\ndelay = '10ms'\n[[chaos]]\nat = '250ms'\nwhat = 'cut-connections'\n",
    )
}

/// A database that nobody but its owner may enter, and a role with these rights; how to connect as it.
async fn lent(grants: impl Fn(&str) -> bool, more: &str) -> PgConnectOptions {
    let database = cluster::database().await;
    let name = database.get_database().unwrap().to_owned();
    let role = format!("role_of_{name}");
    let mut connection = PgConnection::connect_with(&database).await.unwrap();
    let statements = GRANTS.lines().filter(|line| !line.starts_with("--")).filter(|line| grants(line));
    let grants: String = statements.map(|line| line.replace("DATABASE jobs", &format!("DATABASE {name}")) + "\n").collect();
    let grants = grants.replace("ROLE simq", &format!("ROLE {role}")).replace("TO simq", &format!("TO {role}"));
    let all = format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC;\n{grants}{}", more.replace("THE_ROLE", &role));
    sqlx::raw_sql(AssertSqlSafe(all)).execute(&mut connection).await.unwrap();
    database.username(&role)
}

async fn refusal(database: &PgConnectOptions) -> String {
    match simq::real::run(plan(&small(), 0, database, "simq_test")).await {
        Err(error @ Error::Database(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rights_are_enough_even_for_chaos() {
    let database = lent(|_| true, "").await;
    let outcome = simq::real::run(plan(&small(), 0, &database, "simq_test")).await.unwrap();
    assert_eq!((outcome.end, &outcome.breaches[..]), (End::Finished, &[][..]));
    assert_eq!(outcome.summary.counts.completed, 60);
    assert!(outcome.record.blows[0].hit >= 4, "it may end its own connections: {:?}", outcome.record.blows);
}

#[tokio::test]
async fn a_missing_right_is_named_with_the_grant_that_mends_it() {
    let without_create = lent(|line| !line.contains("CREATE ON"), "").await;
    let (role, name) = (without_create.get_username().to_owned(), without_create.get_database().unwrap().to_owned());
    let expected = format!("role `{role}` may not make a schema in database `{name}`: GRANT CREATE ON DATABASE {name} TO {role}");
    assert_eq!(refusal(&without_create).await, expected);
    let without_connect = refusal(&lent(|line| !line.contains("CONNECT ON"), "").await).await;
    assert!(without_connect.contains("GRANT CONNECT ON DATABASE"), "{without_connect}");
}

#[tokio::test]
async fn too_few_connections_are_said_with_both_numbers_before_anything_is_made() {
    let database = lent(|_| true, "ALTER ROLE THE_ROLE CONNECTION LIMIT 6;").await;
    let message = refusal(&database).await;
    assert!(
        message.starts_with("the run needs 8 connections, and the role has 6 of its 6 left: lower `connections`"),
        "{message}"
    );
    let mut connection = PgConnection::connect_with(&database).await.unwrap();
    let made: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_namespace WHERE nspname = 'simq_test'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(made, 0);
}

#[test]
fn the_readme_has_the_rights_that_are_tested() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    for line in GRANTS.lines().filter(|line| !line.starts_with("--")) {
        assert!(readme.contains(line), "the README lacks `{line}`");
    }
}
