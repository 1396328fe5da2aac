//! Orders that have ended and are still stored.

use std::fmt;
use std::str::FromStr;

use crate::chain::{ChainNodeId, OrderKey};
use crate::{Tenant, Timestamp};

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// The order reached an end node.
    Finished,
    /// The order reached an end node after a failed step had moved it along an `on_error` link.
    Failed,
    /// A person removed the order.
    Removed,
}

impl OrderOutcome {
    /// The outcome's name in the API.
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

/// The error for a text that is not the name of an [`OrderOutcome`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the outcome of an order")]
pub struct BadOrderOutcome(String);

impl FromStr for OrderOutcome {
    type Err = BadOrderOutcome;
    fn from_str(text: &str) -> Result<Self, BadOrderOutcome> {
        [Self::Finished, Self::Failed, Self::Removed]
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or_else(|| BadOrderOutcome(text.into()))
    }
}

/// The stored summary of an order that has ended, so that its id is not reused by accident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedOrder {
    /// The order's chain and id.
    pub key: OrderKey,
    /// The order's tenant.
    pub tenant: Tenant,
    /// How the order ended.
    pub outcome: OrderOutcome,
    /// The node at which the order ended.
    pub node: ChainNodeId,
    /// When the order ended.
    pub ended_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_round_trip_through_text() {
        for outcome in [OrderOutcome::Finished, OrderOutcome::Failed, OrderOutcome::Removed] {
            assert_eq!(outcome.to_string().parse(), Ok(outcome));
        }
        assert!("Finished".parse::<OrderOutcome>().is_err());
    }
}
