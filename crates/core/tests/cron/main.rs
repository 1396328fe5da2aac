//! Tests the cron evaluator against slower and independent implementations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod brute_force;
mod croner_comparison;
mod dst_examples;
mod generator;
mod properties;
