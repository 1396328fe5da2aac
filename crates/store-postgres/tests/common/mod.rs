//! Shared support of this crate's tests.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod invariants;
pub(crate) mod test_cluster;
pub(crate) mod test_database;
pub(crate) mod test_load;
