//! The file that a command writes its effects to: private, limited in size, and deleted when the attempt is over.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::super::effects::MAX_EFFECTS_BYTES;
use super::{RunAsUser, process_temp_folder};

pub(super) struct EffectsFile {
    path: PathBuf,
    /// The folder of the effects file; deleted with its contents when this value is dropped.
    _dir: TempDir,
}

impl EffectsFile {
    /// Creates a file that only the command's user can open. If that is not this process's user, the folder still
    /// belongs to this process, so that the command cannot replace the file.
    pub(super) fn create(owner: Option<&RunAsUser>) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new()
            .permissions(private)
            .tempdir_in(process_temp_folder::ensure_process_temp_folder()?)?;
        let path = dir.path().join("effects.jsonl");
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        if let Some(owner) = owner {
            let (user, group) = owner.uid_and_gid();
            fchown(&file, Some(user), Some(group))?;
            std::fs::set_permissions(dir.path(), Permissions::from_mode(0o711))?;
        }
        Ok(Self { path, _dir: dir })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the text that the command wrote. A command that removed the file has no effects.
    pub(super) async fn read(&self) -> Result<String, String> {
        match self.read_bytes().await {
            Ok(bytes) if bytes.len() > MAX_EFFECTS_BYTES => {
                Err(format!("the effects file has more than {MAX_EFFECTS_BYTES} bytes"))
            }
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| "the effects file is not UTF-8".into()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(format!("the effects file cannot be read: {e}")),
        }
    }

    async fn read_bytes(&self) -> io::Result<Vec<u8>> {
        // A symbolic link in place of the effects file could lead to a file that the command may not read; a pipe or a
        // device could block the reader forever.
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let opened = tokio::fs::OpenOptions::new().read(true).custom_flags(flags).open(&self.path).await;
        let replaced = || io::Error::other("it is no longer a plain file");
        let file = opened.map_err(|error| match error.raw_os_error() {
            Some(nix::libc::ELOOP) => replaced(),
            _ => error,
        })?;
        if !file.metadata().await?.is_file() {
            return Err(replaced());
        }
        let mut bytes = Vec::new();
        file.take(MAX_EFFECTS_BYTES as u64 + 1).read_to_end(&mut bytes).await?;
        Ok(bytes)
    }
}
