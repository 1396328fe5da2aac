//! Extractor for the rest of a path. Paths of orders and chains are written raw, without their leading slash.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use crate::app_state::App;
use crate::problem::Problem;

/// The rest of the path with a leading slash, parsed as a `T`; 400 if it cannot be parsed.
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
        parse_path_parameter(&format!("/{rest}")).map(Self)
    }
}

/// Parses a path or a part of one; a fault names the parameter `path`.
pub(crate) fn parse_path_parameter<T: FromStr>(text: &str) -> Result<T, Problem>
where
    T::Err: Display,
{
    text.parse().map_err(|e| Problem::malformed(e).with_parameter("path"))
}
