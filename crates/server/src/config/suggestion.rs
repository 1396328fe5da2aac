//! Suggestions for mistyped names.

pub use pointsman_core::suggestion::{did_you_mean_suffix, suggest_name, suggest_names};
