//! The files of a configuration as they were at one moment.
//!
//! What is compared to notice a change is exactly what was read, so that no change falls between the two.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::lookup::Sources;
use super::yaml::MAX_BYTES;

/// Files and what they held, or why they could not be read.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) files: Vec<(PathBuf, Result<Vec<u8>, String>)>,
    /// A folder that could not be read.
    pub(super) problem: Option<(PathBuf, String)>,
}

impl Snapshot {
    pub(super) fn take(sources: &Sources) -> Self {
        let (paths, problem) = sources.paths();
        let read = |path: PathBuf| {
            let content = content(&path);
            (path, content)
        };
        Self { files: paths.into_iter().map(read).collect(), problem }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.files.hash(&mut hasher);
        self.problem.hash(&mut hasher);
        hasher.finish()
    }
}

/// At most one byte more than is taken, so that what is too large is seen to be.
fn content(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    // Opening a pipe would wait for somebody to write to it.
    if !std::fs::metadata(path).map_err(cannot)?.is_file() {
        return Err("is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

/// A fingerprint of everything a configuration was read from: its files, and the files of its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Print {
    files: u64,
    secrets: Vec<(PathBuf, u64)>,
}

impl Print {
    pub(super) fn of(snapshot: &Snapshot, secrets: &[PathBuf]) -> Self {
        let hashed = |path: &PathBuf| {
            let mut hasher = DefaultHasher::new();
            content(path).hash(&mut hasher);
            (path.clone(), hasher.finish())
        };
        Self { files: snapshot.hash(), secrets: secrets.iter().map(hashed).collect() }
    }

    /// The same, for how things are now.
    pub(super) fn renewed(&self, snapshot: &Snapshot) -> Self {
        let secrets: Vec<PathBuf> = self.secrets.iter().map(|(path, _)| path.clone()).collect();
        Self::of(snapshot, &secrets)
    }
}
