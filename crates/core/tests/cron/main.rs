//! The cron evaluator against slower and independent ways to the same answer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod croner;
mod generate;
mod oracle;
mod policy;
mod properties;
