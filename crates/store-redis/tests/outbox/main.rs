//! The outbox of document 001 on a real server: what producers leave with plain commands becomes events.
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
