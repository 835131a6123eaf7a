use super::herd;
use std::path::Path;
use simq::metrics::Limit;
fn one(name: &str, c: &simq::metrics::Comparison) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    simq::report::write(c, &dir, "text").unwrap();
    println!("{}", simq::report::table(c, false, 160));
    println!("{}", simq::report::table(c, true, 70));
    println!("{}\n", simq::report::verdict(c).join("\n"));
}
#[test]
fn look() {
    one("outage", &herd::compare(herd::scenario()));
    let mut many = herd::scenario();
    many.policies = (0..12).map(|i| { let mut p = herd::policies()[i % 3].clone(); p.name = format!("{}-with-a-long-name-{i}", p.name); p }).collect();
    many.repetitions = 3;
    for g in &mut many.jobs { g.max_retries = 12; g.permanent = 0.05; }
    let mut many = herd::compare(many);
    many.partial = true;
    many.runs[2].summary.limit = Limit::Harness;
    one("many", &many);
    let mut small = herd::scenario();
    small.policies.truncate(1);
    small.jobs.truncate(1);
    small.jobs[0].count = 1;
    small.downstream.outages.clear();
    one("small", &herd::compare(small));
    let mut kept = herd::scenario();
    for g in &mut kept.jobs { g.max_retries = 12; }
    kept.repetitions = 3;
    one("kept", &herd::compare(kept));
}
