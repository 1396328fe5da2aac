//! Whom servers run as. They refuse to run as root, as which tests often run in containers.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use nix::unistd::{User, geteuid};

/// Who runs the servers.
#[derive(Debug, Clone)]
pub(crate) enum Servant {
    /// We ourselves.
    Us,
    /// Somebody with fewer rights, because we are root.
    Other { uid: u32, gid: u32 },
}

impl Servant {
    pub(crate) fn find() -> anyhow::Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self::Us);
        }
        for name in ["postgres", "nobody"] {
            if let Some(user) = User::from_name(name)? {
                return Ok(Self::Other { uid: user.uid.as_raw(), gid: user.gid.as_raw() });
            }
        }
        anyhow::bail!("servers refuse to run as root, and there is neither a user `postgres` nor `nobody`")
    }

    /// Lets a command run as this user.
    pub(crate) fn run(&self, command: &mut Command) {
        match *self {
            Self::Us => {}
            Self::Other { uid, gid } => {
                command.uid(uid).gid(gid);
            }
        }
    }

    /// Gives a file or a folder to this user.
    pub(crate) fn give(&self, path: &Path) -> anyhow::Result<()> {
        match *self {
            Self::Us => Ok(()),
            Self::Other { uid, gid } => chown(path, Some(uid), Some(gid))
                .with_context(|| format!("cannot give {} to the user of the server", path.display())),
        }
    }
}
