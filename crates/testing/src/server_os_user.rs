//! The user that PostgreSQL, Redis and PgBouncer servers run as. PostgreSQL refuses to run as root, and tests in
//! containers often do run as root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use nix::unistd::{User, geteuid};

/// The user that PostgreSQL, Redis and PgBouncer servers run as.
#[derive(Debug, Clone)]
pub(crate) enum ServerOsUser {
    /// Servers run as the user of this process.
    CurrentUser,
    /// Servers run as a user with fewer rights, because this process runs as root.
    Unprivileged { uid: u32, gid: u32 },
}

impl ServerOsUser {
    /// Chooses the current user, or an unprivileged one if this process runs as root.
    pub(crate) fn choose_os_user() -> anyhow::Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::CurrentUser);
        }
        for name in ["postgres", "nobody"] {
            if let Some(user) = User::from_name(name)? {
                return Ok(Self::Unprivileged { uid: user.uid.as_raw(), gid: user.gid.as_raw() });
            }
        }
        anyhow::bail!(
            "servers refuse to run as root, and neither the user `postgres` nor `nobody` exists; create one of them"
        )
    }

    /// Makes a command run as this user.
    pub(crate) fn apply_to_command(&self, command: &mut Command) {
        match *self {
            Self::CurrentUser => {}
            Self::Unprivileged { uid, gid } => {
                command.uid(uid).gid(gid);
            }
        }
    }

    /// Makes this user the owner of a file or a folder.
    pub(crate) fn chown_path(&self, path: &Path) -> anyhow::Result<()> {
        match *self {
            Self::CurrentUser => Ok(()),
            Self::Unprivileged { uid, gid } => chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot make the server's user the owner of {}", path.display())),
        }
    }
}
