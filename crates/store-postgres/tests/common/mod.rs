//! What several tests of this store need.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod lent;
pub(crate) mod load;
