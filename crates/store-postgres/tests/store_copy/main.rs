//! Copies of a store to another kind of store, interruptions of them, and stores that cannot be copied.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod differences;
mod interrupted;
mod outbox;
mod partitions;
mod rejected;
mod rules;
#[path = "../store_location/mod.rs"]
mod store_location;
mod suite;
#[path = "../test_store/mod.rs"]
mod test_store;
