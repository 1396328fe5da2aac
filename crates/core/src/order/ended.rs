//! Orders that have ended, as far as they are remembered.

use std::fmt;
use std::str::FromStr;

use crate::chain::{NodeId, OrderKey};
use crate::{Tenant, Timestamp};

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// It reached an end node.
    Finished,
    /// It reached an end node by a way on which a failed step led along an `on_error`.
    Failed,
    /// A person removed it.
    Removed,
}

impl OrderOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for OrderOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the outcome of an order")]
pub struct BadOutcome(String);

impl FromStr for OrderOutcome {
    type Err = BadOutcome;
    fn from_str(text: &str) -> Result<Self, BadOutcome> {
        [Self::Finished, Self::Failed, Self::Removed]
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or_else(|| BadOutcome(text.into()))
    }
}

/// What is remembered of an order that has ended, so that its id is not used again by accident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOrder {
    pub key: OrderKey,
    pub tenant: Tenant,
    pub outcome: OrderOutcome,
    /// Where it was when it ended.
    pub node: NodeId,
    pub ended: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_as_they_are_written() {
        for outcome in [OrderOutcome::Finished, OrderOutcome::Failed, OrderOutcome::Removed] {
            assert_eq!(outcome.to_string().parse(), Ok(outcome));
        }
        assert!("Finished".parse::<OrderOutcome>().is_err());
    }
}
