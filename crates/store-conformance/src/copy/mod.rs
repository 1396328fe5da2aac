//! For moves from one store to another.
//!
//! - `full_store.rs` is a store that holds something of everything, `list_snapshot.rs` all that it tells, `continued_work.rs` how it goes on.
//! - `location.rs` is where a store lies, `copying_harness.rs` a harness that moves it at every restart, `page_hook.rs` what may come
//!   between two pages.
//! - The other files are behaviours that hold for moves to a place and from there, whatever kind it is of: see
//!   [`copy_suite!`](crate::copy_suite).
//!
//! What survives a restart survives a move, too: see [`copy_restart_suite!`](crate::copy_restart_suite).

mod continued_work;
mod copy_suite;
mod copying_harness;
mod full_store;
mod list_snapshot;
mod location;
mod page_hook;
mod restart_suite;

pub mod concurrent_access;
pub mod interrupted;
pub mod large_store;
pub mod refusals;
pub mod round_trips;

pub use copying_harness::CopyingHarness;
pub use full_store::{fill_store, full_registration};
pub use location::{OpenError, StoreLocation, run_blocking};
