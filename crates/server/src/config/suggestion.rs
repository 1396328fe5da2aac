//! The name that somebody who mistyped one probably meant.

pub use pointsman_core::nearest::{hint, nearest, several};
