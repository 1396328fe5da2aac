//! Servers and connections that fail under load: acknowledged events are journaled once, refused ones at most once, objects
//! keep their order, and the store recovers without intervention.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod disk;
mod lost_replies;
mod memory;
mod network;
mod restored_backup;
mod scripts;
mod server;
mod stalled_node;
