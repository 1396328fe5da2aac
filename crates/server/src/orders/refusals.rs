//! Converts refusals of order and chain operations to problems.

use pointsman_core::store::OrderError;

use crate::problem::Problem;

impl From<OrderError> for Problem {
    fn from(refused: OrderError) -> Self {
        match refused {
            OrderError::NoSuchChain(_) | OrderError::NoSuchOrder(_) => Self::not_found(refused),
            OrderError::NoSuchNode(..) => Self::unprocessable(refused).with_pointer("/node"),
            OrderError::ReservedId(_) => Self::unprocessable(refused).with_pointer("/path"),
            OrderError::AlreadyExists(..) | OrderError::IdOfEndedOrder(_) | OrderError::StepRunning(_) => {
                Self::conflict(refused)
            }
        }
    }
}
