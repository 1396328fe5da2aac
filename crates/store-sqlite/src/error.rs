//! Faults of the file, and what they mean to callers.

use std::path::PathBuf;

use pointsman_core::store::StoreError;
use pointsman_store::error::BoxError;
pub(crate) use pointsman_store::error::{Fault, Result};

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

/// Whether what SQLite says means that the file is damaged.
fn is_damage(error: &BoxError) -> bool {
    let code = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    matches!(code, Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase))
}

/// What a fault means to callers.
pub(crate) fn explain(fault: &Fault) -> StoreError {
    match fault {
        Fault::Database(error) if is_damage(error) => StoreError::Damaged(error.to_string()),
        Fault::Database(error) => StoreError::Unavailable(error.to_string()),
        Fault::Damaged(what) => StoreError::Damaged(what.clone()),
    }
}
