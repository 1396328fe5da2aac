//! For moves from one store to another.
//!
//! - `full.rs` is a store that holds something of everything, `lists.rs` all that it tells, `onward.rs` how it goes on.
//! - `lair.rs` is where a store lies, `movers.rs` a harness that moves it at every restart, `pages.rs` what may come
//!   between two pages.
//! - The other files are behaviours that hold for moves to a place and from there, whatever kind it is of: see
//!   [`transfers!`](crate::transfers).
//!
//! What survives a restart survives a move, too: see [`moves!`](crate::moves).

mod full;
mod lair;
mod lists;
mod movers;
mod onward;
mod pages;
mod suite;
mod transfers;

pub mod cut;
pub mod many;
pub mod others;
pub mod refused;
pub mod travels;

pub use full::{fill, plan};
pub use lair::{Lair, Refusal, apart};
pub use movers::Movers;
