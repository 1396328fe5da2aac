//! Copies of stores to and from Redis, and their failures.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod differences;
mod interrupted;
#[path = "../key_dump/mod.rs"]
mod key_dump;
mod outbox;
mod refused;
mod round_trips;
mod same_keys;
#[path = "../store_location/mod.rs"]
mod store_location;
mod suite;
