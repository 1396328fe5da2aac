//! Moving a store to Redis and from there, and what may come in between.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cut;
mod differing;
mod exact;
#[path = "../keys/mod.rs"]
mod keys;
#[path = "../lair/mod.rs"]
mod lair;
mod outbox;
mod refused;
mod suite;
mod there_and_back;
