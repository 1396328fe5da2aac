//! Errors of opening and using the file, and their conversion to the errors that callers get.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pointsman_core::store::StoreError;
use pointsman_store::error::BoxError;
pub(crate) use pointsman_store::error::{Fault, TableResult};
use rusqlite::ErrorCode;

/// The reason why a store could not be opened, as a message for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{path} is in use by another process; stop that process first, or use another file")]
    InUse { path: PathBuf },
    #[error(
        "{path} was written by a newer version of Pointsman (its layout is {found}, this version supports up to {supported}); \
         run that version, or restore a backup made before the upgrade"
    )]
    NewerLayout { path: PathBuf, found: i64, supported: i64 },
    #[error("{path} is not a SQLite database; use another file")]
    NotADatabase { path: PathBuf },
    #[error("{path} cannot be opened")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} cannot be opened")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error(
        "{path} cannot be opened because its disk is full; free some space and start again, nothing is lost"
    )]
    DiskFull { path: PathBuf },
    #[error("{path} is damaged; keep a copy of the file, and restore a backup")]
    Damaged { path: PathBuf, source: BoxError },
}

impl OpenError {
    /// Converts a fault to the error of opening the file.
    pub(crate) fn from_fault(path: &Path, fault: Fault) -> Self {
        match fault {
            Fault::Database(error) if is_corruption(&error) => {
                Self::Damaged { path: path.into(), source: error }
            }
            Fault::Database(error) => match error.downcast::<rusqlite::Error>() {
                Ok(error) => Self::from_sqlite(path, *error),
                Err(error) => Self::Io { path: path.into(), source: std::io::Error::other(error) },
            },
            Fault::Damaged(source) => Self::Damaged { path: path.into(), source },
        }
    }

    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        match source.sqlite_error() {
            Some(error) if is_disk_full(error) => Self::DiskFull { path: path.into() },
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

/// Whether the disk is full: for a page, or for the index of the WAL, which SQLite reports as a separate I/O error.
fn is_disk_full(error: &rusqlite::ffi::Error) -> bool {
    error.code == ErrorCode::DiskFull || error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
}

/// Whether an error of SQLite means that the file is damaged.
fn is_corruption(error: &BoxError) -> bool {
    let code = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Converts a fault to the error that callers get.
pub(crate) fn to_store_error(fault: Fault) -> StoreError {
    match fault {
        Fault::Database(error) if is_corruption(&error) => StoreError::damaged(error),
        Fault::Database(error) => StoreError::unavailable(error),
        Fault::Damaged(cause) => StoreError::damaged(cause),
    }
}
