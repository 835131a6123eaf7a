//! Finds server binaries: named ones, the system's, cached ones, fetched ones, in this order. A server that merely
//! happens to run is never used.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Error;
use super::binaries::{Binaries, Source, probe};
use super::cache::Cache;
use super::fetch::{self, Say};
use super::user::User;

/// Where distributions and installers put server binaries. One `*` per path component.
const FOLDERS: [&str; 18] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/libexec/postgresql*",
    "/usr/local/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
    "/Library/PostgreSQL/*/bin",
    "/opt/local/lib/postgresql*/bin",
    "~/.asdf/installs/postgres/*/bin",
    "~/.local/share/mise/installs/postgres/*/bin",
    "~/.pgrx/*/pgrx-install/bin",
    "~/.theseus/postgresql/*/bin",
    "~/.nix-profile/bin",
];

/// Where to look, as the environment has it.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// `SIMQ_PG_BIN`: this folder and no other.
    given: Option<PathBuf>,
    /// `SIMQ_PG_SYSTEM=0` passes the system's binaries over.
    system: bool,
    /// `SIMQ_PG_FETCH=0` forbids fetching.
    fetch: bool,
    path: OsString,
    home: Option<PathBuf>,
}

impl Search {
    pub(super) fn from_env() -> Search {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        Search {
            given: set("SIMQ_PG_BIN").map(PathBuf::from),
            system: set("SIMQ_PG_SYSTEM").is_none_or(|value| value != "0"),
            fetch: set("SIMQ_PG_FETCH").is_none_or(|value| value != "0"),
            path: env::var_os("PATH").unwrap_or_default(),
            home: set("HOME").map(PathBuf::from),
        }
    }

    /// The first place that has usable binaries; among the system's the highest version.
    pub(super) fn run(&self, user: Option<&User>, cache: Option<&Cache>, say: Say) -> Result<Binaries, Error> {
        if let Some(path) = &self.given {
            return probe(path, Source::Given, user).map_err(|why| Error::Given { path: path.clone(), why });
        }
        let mut tried = Vec::new();
        if let Some(found) = self.on_system(user, &mut tried) {
            return Ok(found);
        }
        if let Some(cache) = cache {
            if let Some(found) = fetch::cached(cache, user) {
                return Ok(found);
            }
            if self.fetch {
                match fetch::fetch(cache, user, say) {
                    Ok(found) => return Ok(found),
                    Err(failures) => tried.extend(failures),
                }
            }
        }
        Err(Error::NoServer { tried, hint: install_hint() })
    }

    fn on_system(&self, user: Option<&User>, tried: &mut Vec<String>) -> Option<Binaries> {
        if !self.system {
            return None;
        }
        let mut best: Option<Binaries> = None;
        for bin in self.candidates() {
            match probe(&bin, Source::System, user) {
                Ok(found) if best.as_ref().is_none_or(|best| found.major > best.major) => best = Some(found),
                Ok(_) => {}
                Err(why) => tried.push(why),
            }
        }
        best
    }

    /// Folders with a `postgres` in them, each once, after links were followed.
    fn candidates(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = env::split_paths(&self.path).filter(|folder| folder.is_absolute()).collect();
        // Says where the binaries would be; on Debian it comes without them.
        let pg_config = Command::new("pg_config").arg("--bindir").output();
        folders.extend(pg_config.ok().map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())));
        for pattern in FOLDERS {
            match (pattern.strip_prefix("~/"), &self.home) {
                (Some(below), Some(home)) => folders.extend(expand(home.clone(), below)),
                (Some(_), None) => {}
                (None, _) => folders.extend(expand(PathBuf::from("/"), &pattern[1..])),
            }
        }
        let mut bins: Vec<PathBuf> = Vec::new();
        for postgres in folders.iter().filter_map(|folder| fs::canonicalize(folder.join("postgres")).ok()) {
            let bin = postgres.parent().unwrap_or(Path::new("/")).to_owned();
            if postgres.is_file() && !bins.contains(&bin) {
                bins.push(bin);
            }
        }
        bins
    }
}

/// The existing folders that match `pattern` below `root`.
fn expand(root: PathBuf, pattern: &str) -> Vec<PathBuf> {
    pattern.split('/').fold(vec![root], |roots, part| {
        roots
            .into_iter()
            .flat_map(|root| match part.split_once('*') {
                None => vec![root.join(part)],
                Some((before, after)) => matching(&root, before, after),
            })
            .collect()
    })
}

fn matching(folder: &Path, before: &str, after: &str) -> Vec<PathBuf> {
    let fits = |name: &str| name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> =
        entries.filter(|entry| fits(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Half a sentence: how to install a server here.
fn install_hint() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    match install_command(env::consts::OS, &release) {
        Some(command) => {
            let sudo = if command.starts_with("brew") || rustix::process::geteuid().is_root() { "" } else { "sudo " };
            format!("install one with `{sudo}{command}`")
        }
        None => "install one with the system's package manager".to_owned(),
    }
}

fn install_command(os: &str, release: &str) -> Option<&'static str> {
    if os == "macos" {
        return Some("brew install postgresql@18");
    }
    let ids = release.lines().filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")));
    ids.flat_map(|ids| ids.trim_matches('"').split_whitespace()).find_map(|id| match id {
        "debian" | "ubuntu" => Some("apt-get install -y --no-install-recommends postgresql"),
        "fedora" | "rhel" | "centos" => Some("dnf install -y postgresql-server"),
        "alpine" => Some("apk add postgresql"),
        "arch" => Some("pacman -S --noconfirm postgresql"),
        "suse" | "opensuse" => Some("zypper install -y postgresql-server"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_install_command_of_the_platform_or_its_parent() {
        let mint = "NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n";
        assert_eq!(install_command("linux", mint), Some("apt-get install -y --no-install-recommends postgresql"));
        assert_eq!(install_command("linux", "ID=alpine\n"), Some("apk add postgresql"));
        assert_eq!(
            install_command("linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"),
            Some("dnf install -y postgresql-server")
        );
        assert_eq!(install_command("macos", ""), Some("brew install postgresql@18"));
        assert_eq!(install_command("linux", ""), None);
    }

    #[test]
    fn expands_one_star_per_component() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for folder in ["lib/15/bin", "lib/17/bin", "pgsql-16/bin", "pgsq"] {
            fs::create_dir_all(root.path().join(folder)).expect("folders");
        }
        let below = |pattern: &str| expand(root.path().to_owned(), pattern);
        assert_eq!(below("lib/*/bin"), [root.path().join("lib/15/bin"), root.path().join("lib/17/bin")]);
        assert_eq!(below("pgsql-*/bin"), [root.path().join("pgsql-16/bin")]);
    }
}
