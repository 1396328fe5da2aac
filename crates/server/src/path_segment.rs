//! Extractor for a segment of the request path.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;
use pointsman_core::TaskId;

use crate::app_state::App;
use crate::problem::Problem;

/// The last parameter of the path, parsed as a `T`; 400 if it cannot be parsed.
pub(crate) struct PathSegment<T>(pub(crate) T);

impl<T> FromRequestParts<App> for PathSegment<T>
where
    T: FromStr,
    T::Err: Display,
{
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, app).await.map_err(Problem::malformed)?;
        let (name, text) = params.iter().last().ok_or_else(|| Problem::malformed("the path lacks a name"))?;
        text.parse().map(Self).map_err(|e| Problem::malformed(e).with_parameter(name))
    }
}

/// The id of a task in a path. Any text is accepted; the store decides whether such a task exists.
pub(crate) struct TaskIdSegment(pub(crate) TaskId);

impl FromStr for TaskIdSegment {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(TaskId::from_text(text)))
    }
}
