//! For moves from one store to another: a store that holds something of everything, all that it tells, and how it goes on.
//! What survives a restart survives a move, too: see [`moves!`](crate::moves).

mod cut;
mod full;
mod lists;
mod onward;
mod suite;

pub use cut::{Before, move_pages};
pub use full::{fill, plan};
pub use lists::{assert_same, lists};
pub use onward::goes_on;
