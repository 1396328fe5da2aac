//! Converts refusals of order and chain operations to problems.

use pointsman_core::store::OrderRefused;

use crate::problem::Problem;

impl From<OrderRefused> for Problem {
    fn from(refused: OrderRefused) -> Self {
        match refused {
            OrderRefused::NoSuchChain(_) | OrderRefused::NoSuchOrder(_) => Self::not_found(refused),
            OrderRefused::NoSuchNode(..) => Self::refused(refused).pointer("/node"),
            OrderRefused::Reserved(_) => Self::refused(refused).pointer("/path"),
            OrderRefused::Exists(..) | OrderRefused::Ended(_) | OrderRefused::Running(_) => {
                Self::conflict(refused)
            }
        }
    }
}
