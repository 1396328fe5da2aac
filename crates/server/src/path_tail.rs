//! The rest of an address as an absolute path: orders and chains are written raw, without their leading slash.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use crate::app::App;
use crate::problem::Problem;

/// What lies below an address, with its leading slash. What cannot be read as a `T` is malformed.
pub(crate) struct PathTail<T>(pub(crate) T);

impl<T> FromRequestParts<App> for PathTail<T>
where
    T: FromStr,
    T::Err: Display,
{
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, app).await.map_err(Problem::malformed)?;
        let rest = params.iter().last().map_or("", |(_, rest)| rest);
        parse_path(&format!("/{rest}")).map(Self)
    }
}

/// Reads a path, or a part of one, that stands in an address.
pub(crate) fn parse_path<T: FromStr>(text: &str) -> Result<T, Problem>
where
    T::Err: Display,
{
    text.parse().map_err(|e| Problem::malformed(e).parameter("path"))
}
