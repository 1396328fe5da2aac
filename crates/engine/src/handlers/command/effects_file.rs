//! The file that a command writes its effects to: private, bounded, and gone when the attempt is over.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::super::effects::MAX_BYTES;
use super::workroom;

pub(super) struct EffectsFile {
    path: PathBuf,
    /// Removed with all that is in it when this is dropped.
    _dir: TempDir,
}

impl EffectsFile {
    pub(super) fn create() -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().permissions(private).tempdir_in(workroom::path()?)?;
        let path = dir.path().join("effects.jsonl");
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, _dir: dir })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the command wrote. One that removed the file has no effects.
    pub(super) async fn read(&self) -> Result<String, String> {
        match self.bytes().await {
            Ok(bytes) if bytes.len() > MAX_BYTES => {
                Err(format!("the effects file has more than {MAX_BYTES} bytes"))
            }
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| "the effects file is not UTF-8".into()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(format!("the effects file cannot be read: {e}")),
        }
    }

    async fn bytes(&self) -> io::Result<Vec<u8>> {
        // A pipe or a device in its place could keep the reader for ever.
        if !tokio::fs::symlink_metadata(&self.path).await?.is_file() {
            return Err(io::Error::other("it is no longer a plain file"));
        }
        let file = tokio::fs::File::open(&self.path).await?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).await?;
        Ok(bytes)
    }
}
