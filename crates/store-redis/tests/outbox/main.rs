//! The outbox of document 001 on a real server: what producers leave with plain commands becomes events.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aside;
#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod direct;
mod invariants;
mod languages;
mod meddling;
mod producer;
mod pruning;
mod scripts;
mod takeover;
