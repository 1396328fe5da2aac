//! Converts refusals of order and chain operations to problems.

use pointsman_core::store::OrderRefusal;

use crate::problem::Problem;

impl From<OrderRefusal> for Problem {
    fn from(refused: OrderRefusal) -> Self {
        match refused {
            OrderRefusal::NoSuchChain(_) | OrderRefusal::NoSuchOrder(_) => Self::not_found(refused),
            OrderRefusal::NoSuchNode(..) => Self::refused(refused).pointer("/node"),
            OrderRefusal::ReservedId(_) => Self::refused(refused).pointer("/path"),
            OrderRefusal::AlreadyExists(..) | OrderRefusal::Ended(_) | OrderRefusal::StepRunning(_) => {
                Self::conflict(refused)
            }
        }
    }
}
