//! Faults of the file, and what they mean to callers.

use std::path::PathBuf;

use pointsman_core::store::StoreError;

/// Why a store could not be opened, in words for the person who runs it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{path} is in use by another process; stop that one first, or name another file")]
    InUse { path: PathBuf },
    #[error(
        "{path} was written by a newer version of Pointsman (its layout is {found}, this version knows up to {known}); \
         run that version, or restore a backup made before the upgrade"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{path} is not a SQLite database")]
    NotADatabase { path: PathBuf },
    #[error("{path} cannot be opened")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} cannot be opened")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("what {path} holds cannot be understood: {what}")]
    Damaged { path: PathBuf, what: String },
}

/// What can go wrong inside a transaction. Never the caller's fault.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Damaged(String),
}

impl Fault {
    pub(crate) fn damaged(what: impl std::fmt::Display) -> Self {
        Self::Damaged(what.to_string())
    }
}

impl From<&Fault> for StoreError {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Sqlite(error) => match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                    StoreError::Damaged(error.to_string())
                }
                _ => StoreError::Unavailable(error.to_string()),
            },
            Fault::Damaged(what) => StoreError::Damaged(what.clone()),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;
