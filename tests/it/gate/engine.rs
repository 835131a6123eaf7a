//! Regressions of the engine, planted in its schema: each is caught beside a raw limit, on whatever machine this is.

use simq::check::{Rule, Time, Verdict, engine, median};
use simq::real::pg::Schema;
use simq::real::{Probed, probe};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::{Desk, SMALL, line_of};
use crate::cluster;

async fn execute(database: &PgConnectOptions, statements: &str) {
    let mut connection = PgConnection::connect_with(database).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A scenario that asks for the engine alone, with the bounds of simq's own CI.
fn asserting() -> String {
    let bound = |metric: &str, at_most: &str| format!("[[assert]]\nmetric = '{metric}'\nat_most = {at_most}\n");
    let engine = bound("engine_claim_over_raw", "2.5") + &bound("engine_settle_over_raw", "5");
    SMALL.split("[[assert]]").next().unwrap().to_owned() + &engine
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_its_index_is_caught() {
    let database = cluster::database().await;
    let desk = Desk::with(&asserting());
    let url = database.to_url_lossy().to_string();
    let gate = || desk.simq(&["gate", "scenario.toml", "-q", "--database-url", &url]);
    let good = gate();
    assert!(good.out.contains("held            engine_claim_over_raw"), "{good:?}");
    // Whatever simq puts into this database loses the indexes of its queue as soon as they are made.
    execute(
        &database,
        "CREATE FUNCTION public.lose() RETURNS event_trigger LANGUAGE plpgsql AS $$
         DECLARE name text; BEGIN
             FOR name IN SELECT indexname FROM pg_indexes WHERE tablename = 'ready' AND schemaname LIKE 'simq%' LOOP
                 EXECUTE format('DROP INDEX %I', name);
             END LOOP;
         END $$;
         CREATE EVENT TRIGGER lose ON ddl_command_end WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION public.lose();",
    )
    .await;
    let bad = gate();
    assert_eq!(bad.code, Some(3), "{bad:?}");
    let line = bad.out.lines().next().unwrap();
    let place = format!("scenario.toml:{}: ", line_of(&asserting(), "engine_claim_over_raw"));
    assert!(line.starts_with("broken          engine_claim_over_raw ") && line.contains(&place), "{bad:?}");
}

/// A third of a settlement's time on top of each, in the statement that keeps what has ended.
fn slower(seconds: f64) -> String {
    format!(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
         DECLARE until timestamptz := clock_timestamp() + interval '{:.1} microseconds'; BEGIN
             WHILE clock_timestamp() < until LOOP END LOOP;
             RETURN NULL;
         END $$;
         CREATE TRIGGER slow BEFORE INSERT ON finished FOR EACH STATEMENT EXECUTE FUNCTION slow();",
        seconds * 1e6
    )
}

/// Rounds in a schema of their own, into `all`.
async fn add_rounds(database: &PgConnectOptions, name: &str, plant: &str, all: &mut Probed) {
    let schema = Schema::create(database, name, "simq test").await.unwrap();
    execute(schema.options(), plant).await;
    let probed = probe(&schema, 6).await.unwrap();
    all.settle.extend(&probed.settle);
    for (name, ratios) in probed.ratios {
        all.ratios.entry(name).or_default().extend(ratios);
    }
    schema.drop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_that_takes_a_third_longer_is_caught() {
    let database = cluster::database().await;
    let (mut old, mut new, mut same) = (Probed::default(), Probed::default(), Probed::default());
    let runs = |probed: &Probed| simq::check::Runs {
        scenario: "x".to_owned(),
        fingerprint: String::new(),
        time: Time::Real,
        simq: String::new(),
        machine: Default::default(),
        policies: vec![],
        engine: probed.ratios.clone(),
        unfit: vec![],
    };
    let verdict = |old: &Probed, new: &Probed, metric: &str| {
        let findings = engine(&runs(new), &runs(old), Rule::default());
        println!("{findings:#?}");
        findings.into_iter().find(|finding| finding.metric == metric).unwrap().verdict
    };
    // What the noise hides takes more rounds. In turns, since a busy machine is busier at one time than at another; and a third of what a settlement takes at that time.
    for turn in 0..12 {
        let so_far = old.settle.len();
        add_rounds(&database, &format!("simq_a{turn}"), "SELECT", &mut old).await;
        let more = slower(median(&old.settle[so_far..]) / 3.0);
        add_rounds(&database, &format!("simq_b{turn}"), &more, &mut new).await;
        add_rounds(&database, &format!("simq_c{turn}"), "SELECT", &mut same).await;
        let alarm = |new: &Probed, metric: &str| verdict(&old, new, metric) == Verdict::Worse;
        let seen = alarm(&new, "engine_settle_over_raw");
        let false_alarm = alarm(&new, "engine_claim_over_raw") || alarm(&same, "engine_settle_over_raw");
        if turn >= 2 && seen && !false_alarm {
            break;
        }
    }
    assert_eq!(verdict(&old, &new, "engine_settle_over_raw"), Verdict::Worse);
    assert_ne!(verdict(&old, &new, "engine_claim_over_raw"), Verdict::Worse, "only the settlement is slower");
    assert_ne!(verdict(&old, &same, "engine_settle_over_raw"), Verdict::Worse);
}
