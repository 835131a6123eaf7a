//! The data directory of a fresh server, kept: initdb takes a second of CPU, a copy of what it made a tenth of it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::Path;

use super::Error;
use super::cache::draft;
use super::user::User;

/// Files from this size on are copied without their zeros.
const SPARSE_FROM: u64 = 1 << 20;
const CHUNK: usize = 1 << 16;

/// Copies the template to `data`; `false` if there is no template.
pub(super) fn take(template: &Path, data: &Path, user: Option<&User>) -> Result<bool, Error> {
    if !template.join("PG_VERSION").exists() {
        return Ok(false);
    }
    copy(template, data, user).map_err(Error::file("copy the template to", data))?;
    Ok(true)
}

/// Keeps a copy of `data`. It gets its name when it is whole; if another start was faster, its copy stays.
pub(super) fn keep(data: &Path, template: &Path) -> Result<(), Error> {
    let draft = draft(template)?;
    let kept = copy(data, &draft, None).and_then(|()| fs::rename(&draft, template));
    if kept.is_err() {
        let _best_effort = fs::remove_dir_all(&draft);
    }
    if template.exists() { Ok(()) } else { kept.map_err(Error::file("keep a template in", template)) }
}

/// Removes a template that no server starts from.
pub(super) fn forget(template: &Path) {
    let _best_effort = fs::remove_dir_all(template);
}

fn copy(from: &Path, to: &Path, user: Option<&User>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    give(to, user)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, user)?;
        } else {
            copy_file(&entry.path(), &target)?;
            give(&target, user)?;
        }
    }
    Ok(())
}

/// Nearly half of a fresh data directory is one log segment full of zeros; on a busy disk that is half of the time, too.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let length = source.metadata()?.len();
    if length < SPARSE_FROM {
        return fs::copy(from, to).map(|_| ());
    }
    let mut target = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = source.read(&mut chunk)?;
        match &chunk[..read] {
            [] => return target.set_len(length),
            zeros if zeros.iter().all(|byte| *byte == 0) => target.seek_relative(read as i64)?,
            bytes => target.write_all(bytes)?,
        }
    }
}

fn give(path: &Path, user: Option<&User>) -> io::Result<()> {
    user.map_or(Ok(()), |user| chown(path, Some(user.uid), Some(user.gid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_and_gives_back_what_initdb_made() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let (data, template, copy) = (root.path().join("data"), root.path().join("t/15"), root.path().join("copy"));
        fs::create_dir_all(data.join("base/1")).expect("folders");
        fs::write(data.join("PG_VERSION"), "15\n").expect("a file");
        fs::write(data.join("base/1/1259"), [7; 8192]).expect("a file");
        let mut segment = vec![0; 3 << 20];
        segment[1 << 20] = 1;
        fs::write(data.join("segment"), &segment).expect("a file");
        assert!(!take(&template, &copy, None).expect("no template is no error"));
        keep(&data, &template).expect("a template");
        keep(&data, &template).expect("a second one changes nothing");
        assert!(take(&template, &copy, None).expect("a copy"));
        assert_eq!(fs::read(copy.join("base/1/1259")).expect("a file"), [7; 8192]);
        assert!(fs::read(copy.join("segment")).expect("a file") == segment);
        assert_eq!(fs::read_dir(root.path().join("t")).expect("a folder").count(), 1, "no draft is left");
    }
}
