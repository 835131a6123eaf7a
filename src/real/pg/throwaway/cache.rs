//! simq's cache: fetched server binaries and template data directories.
//!
//! `SIMQ_CACHE_DIR`, else `/var/cache/simq` for root (root's home is closed to the user that the server runs as),
//! else `~/Library/Caches/simq` on macOS, else `$XDG_CACHE_HOME/simq` or `~/.cache/simq`. Everything in it can be
//! made anew: deleting it is always safe.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Error;

/// Half-made things older than this belong to nobody.
const HALF_MADE: Duration = Duration::from_secs(3_600);

/// The cache's folder. It exists and can be written to.
#[derive(Clone, Debug)]
pub(super) struct Cache(PathBuf);

impl Cache {
    /// Opens the cache; `None` if there is no place for one. Then nothing is fetched, and initdb runs at each start.
    pub(super) fn open() -> Option<Cache> {
        let folder = folder()?;
        fs::create_dir_all(&folder).ok()?;
        if rustix::process::geteuid().is_root() {
            make_readable(&folder).ok()?;
        }
        rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).ok()?;
        Some(Cache(folder))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The template for these binaries and these arguments of initdb. Another build of the same version gets another.
    pub(super) fn template(&self, bin: &Path, version: &str, args: &[String]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (bin, version, args, env::consts::ARCH).hash(&mut hasher);
        let number: String = version.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
        self.0.join("templates").join(format!("{number}-{:016x}", hasher.finish()))
    }
}

/// A name beside `path` for a thing that is not whole yet; rename it to `path` when it is. Sweeps old ones away.
pub(super) fn draft(path: &Path) -> Result<PathBuf, Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
    for entry in fs::read_dir(folder).map_err(Error::file("read", folder))?.flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified()).map(|made| SystemTime::now().duration_since(made));
        let old = age.is_ok_and(|age| age.is_ok_and(|age| age > HALF_MADE));
        if old && entry.file_name().to_string_lossy().starts_with("draft-") {
            let _next_time = fs::remove_dir_all(entry.path());
        }
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(folder.join(format!("draft-{name}-{}", std::process::id())))
}

/// Lets everybody read `path` (and enter it, or run it, if its owner may), whatever root's umask is.
pub(super) fn make_readable(path: &Path) -> std::io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    let run = if mode & 0o100 == 0 { 0 } else { 0o111 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o444 | run))
}

fn folder() -> Option<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(named) = set("SIMQ_CACHE_DIR") {
        return Some(named);
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/cache/simq"));
    }
    if cfg!(target_os = "macos") {
        return Some(set("HOME")?.join("Library/Caches/simq"));
    }
    set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache"))).map(|cache| cache.join("simq"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_or_argument_gets_another_template() {
        let cache = Cache("/cache".into());
        let of = |version, arg: &str| cache.template(Path::new("/bin"), version, &[arg.to_owned()]);
        assert_eq!(of("15.18 (Debian)", "-a"), of("15.18 (Debian)", "-a"));
        assert_ne!(of("15.18 (Debian)", "-a"), of("15.18 (Debian)", "-b"));
        assert_ne!(of("15.18 (Debian)", "-a"), of("15.19 (Debian)", "-a"));
        assert!(of("15.18 (Debian)", "-a").to_string_lossy().starts_with("/cache/templates/15.18-"));
    }
}
