//! Servers and connections that fail under load: acknowledged events are journaled once, refused ones at most once, objects
//! keep their order, and the store recovers without intervention.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod flushed_script_cache;
mod full_disk;
mod full_memory;
mod lost_replies;
mod network;
mod restored_backup;
mod stalled_node;
mod stopped_server;
