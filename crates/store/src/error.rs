//! What can go wrong inside a transaction. Never the caller's fault.

use std::error::Error;
use std::fmt;

pub type BoxError = Box<dyn Error + Send + Sync>;

/// It is not an `Error` itself, so that whatever a database's driver says becomes one by `?`.
#[derive(Debug)]
pub enum Fault {
    /// The database could not do it; what it said.
    Database(BoxError),
    /// What it holds cannot be understood.
    Damaged(String),
}

impl Fault {
    pub fn damaged(what: impl fmt::Display) -> Self {
        Self::Damaged(what.to_string())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Database(Box::new(error))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => error.fmt(f),
            Self::Damaged(what) => f.write_str(what),
        }
    }
}

pub type Result<T> = std::result::Result<T, Fault>;
