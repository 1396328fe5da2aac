//! The contents of the configuration files at one moment.
//!
//! Changes are detected by comparing the contents that were read, so that a change during reading is not missed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::inputs::ConfigInputs;
use super::yaml::MAX_YAML_BYTES;

/// The configuration files, each with its contents or the reason why it could not be read.
#[derive(Debug)]
pub(super) struct ConfigFileContents {
    pub(super) files: Vec<(PathBuf, Result<Vec<u8>, String>)>,
    /// The folder that could not be read, and why.
    pub(super) folder_error: Option<(PathBuf, String)>,
}

impl ConfigFileContents {
    pub(super) fn read(inputs: &ConfigInputs) -> Self {
        let (paths, folder_error) = inputs.find_config_files();
        let read = |path: PathBuf| {
            let content = read_file_content(&path);
            (path, content)
        };
        Self { files: paths.into_iter().map(read).collect(), folder_error }
    }

    fn hash_files(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.files.hash(&mut hasher);
        self.folder_error.hash(&mut hasher);
        hasher.finish()
    }
}

/// Reads a file, but at most one byte more than [`MAX_YAML_BYTES`], so that a file that is too large is noticed.
fn read_file_content(path: &Path) -> Result<Vec<u8>, String> {
    let read_error = |error: std::io::Error| format!("cannot be read: {error}");
    // Opening a pipe would block until a writer opens it.
    if !std::fs::metadata(path).map_err(read_error)?.is_file() {
        return Err("is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(read_error)?;
    file.take(MAX_YAML_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(read_error)?;
    Ok(bytes)
}

/// Hashes of the files of a configuration and of its secret files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigFingerprint {
    files_hash: u64,
    secret_file_hashes: Vec<(PathBuf, u64)>,
}

impl ConfigFingerprint {
    pub(super) fn compute(contents: &ConfigFileContents, secret_files: &[PathBuf]) -> Self {
        let hash_file = |path: &PathBuf| {
            let mut hasher = DefaultHasher::new();
            read_file_content(path).hash(&mut hasher);
            (path.clone(), hasher.finish())
        };
        Self {
            files_hash: contents.hash_files(),
            secret_file_hashes: secret_files.iter().map(hash_file).collect(),
        }
    }

    /// The fingerprint of a new reading of the files, with the current contents of the same secret files.
    pub(super) fn recompute(&self, contents: &ConfigFileContents) -> Self {
        let secret_files: Vec<PathBuf> =
            self.secret_file_hashes.iter().map(|(path, _)| path.clone()).collect();
        Self::compute(contents, &secret_files)
    }
}
