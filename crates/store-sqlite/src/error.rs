//! Faults of the file, and what they mean to callers.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pointsman_core::store::StoreError;
use pointsman_store::error::BoxError;
pub(crate) use pointsman_store::error::{Fault, Result};
use rusqlite::ErrorCode;

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
    #[error(
        "{path} cannot be opened because its disk is full; free some space and start again, nothing is lost"
    )]
    DiskFull { path: PathBuf },
    #[error("what {path} holds cannot be understood: {what}")]
    Damaged { path: PathBuf, what: String },
}

impl OpenError {
    /// What a fault means to the person who opens the file.
    pub(crate) fn from_fault(path: &Path, fault: Fault) -> Self {
        match fault {
            Fault::Database(error) if is_damage(&error) => {
                Self::Damaged { path: path.into(), what: error.to_string() }
            }
            Fault::Database(error) => match error.downcast::<rusqlite::Error>() {
                Ok(error) => Self::from_sqlite(path, *error),
                Err(error) => Self::Io { path: path.into(), source: std::io::Error::other(error) },
            },
            Fault::Damaged(what) => Self::Damaged { path: path.into(), what },
        }
    }

    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        match source.sqlite_error() {
            Some(error) if is_full(error) => Self::DiskFull { path: path.into() },
            Some(error) if error.code == ErrorCode::NotADatabase => Self::NotADatabase { path: path.into() },
            Some(_) | None => Self::Sqlite { path: path.into(), source },
        }
    }

    pub(crate) fn from_io(path: &Path, source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull { path: path.into() },
            _ => Self::Io { path: path.into(), source },
        }
    }
}

/// Whether SQLite found no space: for a page, or for the index of the log, which it reports as an I/O error of its own.
fn is_full(error: &rusqlite::ffi::Error) -> bool {
    error.code == ErrorCode::DiskFull || error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
}

/// Whether what SQLite says means that the file is damaged.
fn is_damage(error: &BoxError) -> bool {
    let code = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// What a fault means to callers.
pub(crate) fn explain(fault: &Fault) -> StoreError {
    match fault {
        Fault::Database(error) if is_damage(error) => StoreError::Damaged(error.to_string()),
        Fault::Database(error) => StoreError::Unavailable(error.to_string()),
        Fault::Damaged(what) => StoreError::Damaged(what.clone()),
    }
}
