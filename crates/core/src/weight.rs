//! Weights of tenants and handlers in the weighted round robin that chooses the next task.

use serde::{Deserialize, Serialize};

/// A share in a weighted round robin: an entry of weight 2 gets twice as many tasks run as one of weight 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weight(u16);

impl Weight {
    /// The largest weight.
    pub const MAX: u16 = 1000;

    /// Validates a weight, 1 to [`MAX`](Self::MAX).
    pub fn new(weight: u16) -> Option<Self> {
        (1..=Self::MAX).contains(&weight).then_some(Self(weight))
    }

    /// The weight as a number.
    pub fn get(self) -> u16 {
        self.0
    }

    /// The amount by which the virtual time of an entry advances each time one of its tasks is selected: the greater
    /// the weight, the less. The entry with the smallest virtual time is next.
    pub fn virtual_time_stride(self) -> i64 {
        VIRTUAL_TIME_STRIDE_OF_WEIGHT_1 / i64::from(self.0)
    }
}

/// Large enough that the division by any weight loses almost nothing.
const VIRTUAL_TIME_STRIDE_OF_WEIGHT_1: i64 = 1_000_000;

impl Default for Weight {
    fn default() -> Self {
        Self(1)
    }
}
