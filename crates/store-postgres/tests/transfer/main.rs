//! Moving a store from one kind to another, and what may come in between.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod cut;
mod differing;
#[path = "../house/mod.rs"]
mod house;
#[path = "../lair/mod.rs"]
mod lair;
mod outbox;
mod refused;
mod rules;
mod slices;
mod suite;
