//! The outbox of document 001 on a real server: entries that producers push with plain commands become events.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod direct_emits;
mod foreign_writes;
mod invariants;
mod languages;
mod many_producers;
mod producer;
mod pruning;
mod scripts;
mod set_aside;
mod takeover;
