//! "The Retry Trap" prints a table of its failed e-mails. It must come out of our database.

use std::path::Path;
use std::process::Command;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use crate::cluster;

/// A row of the table: status, retries, why, what went wrong last, and the seconds from `created_at` to `schedule_at`.
type Row = (String, i32, String, String, f64);

async fn table(connection: &mut PgConnection, policy: &str) -> Vec<Row> {
    let schema: String = sqlx::query_scalar(
        "SELECT nspname::text FROM pg_namespace WHERE obj_description(oid) LIKE '%scenario article, policy ' || $1 || ',%'",
    )
    .bind(policy)
    .fetch_one(&mut *connection)
    .await
    .unwrap();
    let query = format!(
        "SELECT status, retries, discarded_why, failure, extract(epoch FROM schedule_at - created_at)::float8 FROM {schema}.jobs ORDER BY id"
    );
    sqlx::query_as(AssertSqlSafe(query)).fetch_all(connection).await.unwrap()
}

/// Takes 14 seconds, since that is what the article is about.
#[tokio::test]
async fn the_articles_table_comes_out_of_the_database() {
    let database = cluster::database().await;
    let home = tempfile::tempdir().unwrap();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/article.toml");
    let mut simq = Command::new(env!("CARGO_BIN_EXE_simq"));
    simq.arg("run").arg(scenario).arg("--out").arg(home.path().join("report")).arg("--keep");
    simq.args(["--policy", "exponential", "--policy", "classified"]).env("DATABASE_URL", database.to_url_lossy().as_str());
    let output = tokio::task::spawn_blocking(move || simq.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut connection = PgConnection::connect_with(&database).await.unwrap();

    let exponential = table(&mut connection, "exponential").await;
    assert_eq!(exponential.len(), 5);
    for (status, retries, why, failure, scheduled_after) in exponential {
        assert_eq!((status.as_str(), retries, why.as_str(), failure.as_str()), ("discarded", 3, "exhausted", "status-422"));
        // 2 + 4 + 8, and what the four attempts and their claims took.
        assert!((14.0..15.5).contains(&scheduled_after), "{scheduled_after} s");
    }

    let classified = table(&mut connection, "classified").await;
    assert_eq!(classified.len(), 5);
    for (status, retries, why, failure, scheduled_after) in classified {
        assert_eq!((status.as_str(), retries, why.as_str(), failure.as_str()), ("discarded", 0, "permanent", "status-422"));
        assert_eq!(scheduled_after, 0.0, "never scheduled anew");
    }
}
