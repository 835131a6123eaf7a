use super::herd;
use std::path::Path;
#[test]
fn look() {
    let c = herd::compare(herd::scenario());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outage");
    println!("{:?}", simq::report::write(&c, &dir, "text").unwrap());
    println!("{}", simq::report::table(&c, false, 160));
    println!("{}", simq::report::verdict(&c).join("\n"));
}
