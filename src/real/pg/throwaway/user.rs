//! Whom the server runs as. Postgres and initdb refuse uid 0, so root drops to `postgres`, else to `nobody`, for these
//! two programs alone; everything else stays as it was started.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Error;

/// A user of this system, other than the one simq runs as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl User {
    /// Whether this user may pass through `path` and every folder above it.
    pub(super) fn may_enter(&self, path: &Path) -> bool {
        path.ancestors().filter(|folder| !folder.as_os_str().is_empty()).all(|folder| {
            fs::metadata(folder).is_ok_and(|meta| {
                let shift = if meta.uid() == self.uid {
                    6
                } else if meta.gid() == self.gid {
                    3
                } else {
                    0
                };
                meta.mode() >> shift & 1 == 1
            })
        })
    }
}

/// The user to drop to: nobody but ourselves unless we are root.
pub(super) fn for_server() -> Result<Option<User>, Error> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = ["postgres", "_postgres", "nobody"].iter().find_map(|name| lookup(&passwd, name)).ok_or(Error::NoUser)?;
    try_switch(&user).map_err(|source| Error::NoSwitch { user: user.name.clone(), source })?;
    Ok(Some(user))
}

/// Containers take the right to switch away (EPERM), or know no other user (EINVAL). Whether the program exists does not
/// matter: the switch comes first.
fn try_switch(user: &User) -> io::Result<()> {
    let mut command = Command::new("/bin/true");
    drop_to(&mut command, Some(user));
    match command.status() {
        Err(error) if [Errno::PERM, Errno::INVAL].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Makes `command` run as `user`; supplementary groups go too.
pub(super) fn drop_to(command: &mut Command, user: Option<&User>) {
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
}

/// Hands `path` to `user`.
pub(super) fn give(path: &Path, user: Option<&User>) -> Result<(), Error> {
    let Some(user) = user else { return Ok(()) };
    chown(path, Some(user.uid), Some(user.gid)).map_err(Error::file("hand over to the server's user", path))
}

fn lookup(passwd: &str, name: &str) -> Option<User> {
    let mut fields = passwd.lines().map(|line| line.split(':')).find_map(|mut fields| {
        let found = fields.next() == Some(name);
        found.then_some(fields)
    })?;
    let _password = fields.next()?;
    let uid = number(fields.next()?)?;
    let gid = number(fields.next()?)?;
    (uid != 0).then(|| User { name: name.to_owned(), uid, gid })
}

/// macOS writes `nobody` as -2.
fn number(field: &str) -> Option<u32> {
    let value: i64 = field.parse().ok()?;
    u32::try_from(value).ok().or_else(|| i32::try_from(value).ok().map(i32::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nnobody:*:-2:-2:Nobody:/var/empty:/bin/false\n\
        postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n";

    #[test]
    fn finds_users_by_their_whole_name() {
        let postgres = User { name: "postgres".into(), uid: 101, gid: 104 };
        assert_eq!(lookup(PASSWD, "postgres"), Some(postgres));
        assert_eq!(lookup(PASSWD, "post"), None);
    }

    #[test]
    fn reads_negative_ids() {
        let nobody = lookup(PASSWD, "nobody").expect("it is there");
        assert_eq!((nobody.uid, nobody.gid), (u32::MAX - 1, u32::MAX - 1));
    }

    #[test]
    fn never_drops_to_root() {
        assert_eq!(lookup(PASSWD, "root"), None);
    }
}
