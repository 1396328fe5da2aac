//! Servers and wires that fail under load: what was acknowledged is there once, what was refused at most once, every object
//! keeps its order, and the store goes on by itself as soon as it can.
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
