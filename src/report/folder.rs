//! A folder that appears whole or not at all.
//!
//! ```text
//!  beside(reports/outage)   check it may be replaced; make reports/.outage.draft-<pid>-<n>
//!  … files are written …    an error or a panic drops the draft, and with it the files
//!  publish()                reports/outage ─► reports/.outage.old-…,  draft ─► reports/outage,  old is removed
//! ```
//! Between the two renames there is a moment without a report; if the second fails the first is undone. Nothing is synced to
//! disk: a report can be made again.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Error;

/// Tells drafts of one process apart.
static DRAFTS: AtomicU32 = AtomicU32::new(0);

/// A report in the making. Dropped before it is published, it leaves nothing.
#[derive(Debug)]
pub(super) struct Draft {
    target: PathBuf,
    draft: PathBuf,
    old: PathBuf,
}

/// Checks that a report can be written to `dir`: that nothing is there, or an empty folder, or an older report, and that folders can
/// be made beside it. Ask before a long run, so that its figures do not end in an error.
///
/// # Errors
/// [`Error::Alien`], [`Error::NotAFolder`] or [`Error::Fixed`] if something else is there, [`Error::Write`] if it can't be
/// looked at or nothing can be written.
pub fn try_out(dir: &Path) -> Result<(), Error> {
    Draft::beside(dir).map(drop)
}

/// Checks that what is at `dir` may be replaced.
fn check(dir: &Path) -> Result<(), Error> {
    match fs::metadata(dir) {
        Ok(_) if is_fixed(dir) => Err(Error::Fixed(dir.to_owned())),
        Ok(meta) if meta.is_dir() => check_contents(dir),
        Ok(_) => Err(Error::NotAFolder(dir.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::at(dir)(error)),
    }
}

/// Whether the folder can't be swapped for another: others stand on it, a mount or this process.
fn is_fixed(dir: &Path) -> bool {
    let Ok(full) = fs::canonicalize(dir) else { return false };
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    let mounted = full.parent().is_none_or(|parent| device(parent) != device(&full));
    mounted || std::env::current_dir().is_ok_and(|here| here == full)
}

/// A report holds both summaries, and besides only tables, charts and JSON.
fn check_contents(dir: &Path) -> Result<(), Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::at(dir))? {
        let entry = entry.map_err(Error::at(dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let file = entry.file_type().map_err(Error::at(dir))?.is_file();
        let ours = matches!(Path::new(&name).extension().and_then(OsStr::to_str), Some("csv" | "json" | "png"));
        if !file || !ours {
            return Err(Error::Alien { dir: dir.to_owned(), found: name });
        }
        names.push(name);
    }
    names.sort();
    let has = |name: &str| names.iter().any(|n| n == name);
    match names.first() {
        Some(first) if !has("summary.csv") || !has("summary.json") => {
            Err(Error::Alien { dir: dir.to_owned(), found: first.clone() })
        }
        _ => Ok(()),
    }
}

impl Draft {
    /// Begins a report that will stand at `dir`; folders on the way to it are made.
    pub(super) fn beside(dir: &Path) -> Result<Draft, Error> {
        check(dir)?;
        // Through links, so that a rename replaces the folder and not the link to it.
        let target = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let Some(name) = target.file_name().map(|name| name.to_string_lossy().into_owned()) else {
            return Err(Error::NotAFolder(target));
        };
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let sibling = |what: &str| target.with_file_name(format!(".{name}.{what}-{}-{number}", process::id()));
        let (draft, old) = (sibling("draft"), sibling("old"));
        if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(Error::at(parent))?;
        }
        fs::create_dir(&draft).map_err(Error::at(&draft))?;
        Ok(Draft { target, draft, old })
    }

    /// Where a file of the report is to be written.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.draft.join(name)
    }

    /// Puts the report in its place, and says where that is.
    pub(super) fn publish(self) -> Result<PathBuf, Error> {
        // Again: a run may have taken minutes.
        check(&self.target)?;
        let replaces = self.target.exists();
        if replaces {
            fs::rename(&self.target, &self.old).map_err(Error::at(&self.target))?;
        }
        if let Err(error) = fs::rename(&self.draft, &self.target) {
            if replaces {
                fs::rename(&self.old, &self.target).map_err(Error::at(&self.target))?;
            }
            return Err(Error::at(&self.target)(error));
        }
        if replaces {
            fs::remove_dir_all(&self.old).map_err(Error::at(&self.old))?;
        }
        Ok(self.target.clone())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` nothing is there. An error here would hide the one that brought us here.
        let _ = fs::remove_dir_all(&self.draft);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_draft_that_is_dropped_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let draft = Draft::beside(&home.path().join("a")).unwrap();
        fs::write(draft.file("summary.csv"), "x").unwrap();
        assert_eq!(names(home.path()).len(), 1);
        drop(draft);
        assert!(names(home.path()).is_empty());
    }

    #[test]
    fn a_report_replaces_an_older_one_and_nothing_of_it_stays() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("deep/er/a");
        for round in ["one", "two"] {
            let draft = Draft::beside(&target).unwrap();
            for name in ["summary.csv", "summary.json", &format!("{round}.png")] {
                fs::write(draft.file(name), round).unwrap();
            }
            draft.publish().unwrap();
        }
        assert_eq!(names(&target), ["summary.csv", "summary.json", "two.png"]);
        assert_eq!(names(target.parent().unwrap()), ["a"]);
    }

    #[test]
    fn a_folder_with_a_persons_files_is_refused() {
        let home = tempfile::tempdir().unwrap();
        check(home.path()).expect("an empty folder may be replaced");
        fs::write(home.path().join("data.csv"), "mine").unwrap();
        assert!(check(home.path()).unwrap_err().to_string().contains("data.csv"));
        for name in ["summary.csv", "summary.json"] {
            fs::write(home.path().join(name), "").unwrap();
        }
        check(home.path()).expect("a report with one more table may be replaced");
        fs::write(home.path().join("notes.txt"), "mine").unwrap();
        assert!(check(home.path()).unwrap_err().to_string().contains("notes.txt"));
    }
}
