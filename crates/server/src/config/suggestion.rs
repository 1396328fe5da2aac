//! Suggestions for mistyped names.

pub use pointsman_core::nearest::{hint, nearest, several};
