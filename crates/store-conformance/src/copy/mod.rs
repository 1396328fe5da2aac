//! Behaviours of copies from one store to another.
//!
//! - `sample_data.rs` fills a store with data of every kind, `store_lists.rs` reads all of it for a comparison, and
//!   `continued_work.rs` checks that the copy continues its work.
//! - `location.rs` is the location of a store, `copy_on_reopen_harness.rs` a harness that copies the store when it is
//!   reopened, and `page_hook.rs` runs code before a page is written.
//! - The other files are behaviours of copies to and from a location of any kind: see
//!   [`copy_suite!`](crate::copy_suite).
//!
//! Data that survives a restart must also survive a copy: see [`copy_restart_suite!`](crate::copy_restart_suite).

mod continued_work;
mod copy_on_reopen_harness;
mod copy_suite;
mod location;
mod page_hook;
mod restart_suite;
mod sample_data;
mod store_lists;

pub mod concurrent_access;
pub mod interrupted;
pub mod large_store;
pub mod refusals;
pub mod round_trips;

pub use copy_on_reopen_harness::CopyOnReopenHarness;
pub use location::{LocationOpenError, StoreLocation, run_blocking};
pub use sample_data::{fill_with_sample_data, sample_registration};
