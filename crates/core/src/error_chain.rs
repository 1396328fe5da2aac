//! Errors with their causes, as one line for people.

use std::error::Error;
use std::fmt;

/// Displays an error and its causes: `cannot open the store: a.db cannot be opened: permission denied`. The message of
/// an error never repeats its source, so every error that people read is displayed this way.
#[derive(Debug)]
pub struct ErrorChain<'a>(pub &'a dyn Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the number")]
    struct Unreadable(#[source] std::num::ParseIntError);

    #[test]
    fn a_store_error_has_its_cause_in_the_alternate_form_only() {
        let error = crate::store::StoreError::unavailable("the disk is full");
        assert_eq!(error.to_string(), "the store is not available");
        assert_eq!(format!("{error:#}"), "the store is not available: the disk is full");
        assert_eq!(format!("{:#}", ErrorChain(&error)), "the store is not available: the disk is full");
    }

    #[test]
    fn the_causes_follow_the_error() {
        let error = Unreadable("x".parse::<i32>().unwrap_err());
        assert_eq!(ErrorChain(&error).to_string(), "cannot read the number: invalid digit found in string");
    }
}
