//! Errors inside a transaction. The caller has caused none of them: the database has failed or is damaged.

use std::any::Any;
use std::error::Error;
use std::fmt;

use pointsman_core::ErrorChain;

pub type BoxError = Box<dyn Error + Send + Sync>;

/// An error of a store's database. It does not implement `Error`, so that `?` converts any driver error into it.
#[derive(Debug)]
pub enum Fault {
    /// The database failed; contains the driver's error.
    Database(BoxError),
    /// Stored data cannot be decoded.
    Damaged(BoxError),
}

impl Fault {
    pub fn damaged(cause: impl Into<BoxError>) -> Self {
        Self::Damaged(cause.into())
    }

    /// The fault of stored data that cannot be decoded because of an error.
    pub fn undecodable(data_name: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::damaged(UndecodableData { data_name: data_name.into(), source: source.into() })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot decode {data_name}")]
struct UndecodableData {
    /// Names the data in the error message: "the definition of a handler".
    data_name: String,
    source: BoxError,
}

impl<E: Error + Send + Sync + 'static> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Database(Box::new(error))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) | Self::Damaged(error) => ErrorChain(&**error).fmt(f),
        }
    }
}

/// The result of reading or writing tables inside a transaction.
pub type TableResult<T> = Result<T, Fault>;

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
