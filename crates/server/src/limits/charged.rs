//! Answers that are counted until they have been written to the client.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::Method;
use http_body_util::BodyExt;

use super::{AnswerBudget, AnswerPermit};
use crate::auth::Caller;

/// Answers up to this size are not counted: their memory is bounded by the number of connections.
pub(crate) const SMALL_ANSWER: usize = 64 << 10;

/// Bytes with their part of the budget.
struct Charged {
    bytes: Bytes,
    _permit: Arc<AnswerPermit>,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that give their permit back when the connection has written them, and not when the body has ended.
fn charged(bytes: Bytes, permit: Arc<AnswerPermit>) -> Bytes {
    Bytes::from_owner(Charged { bytes, _permit: permit })
}

/// A stream that holds its permit until it has ended.
pub(crate) fn held<S: Stream>(stream: S, permit: Option<AnswerPermit>) -> impl Stream<Item = S::Item> {
    stream.inspect(move |_| {
        let _held = &permit;
    })
}

/// Counts an answer that was built whole. A reading that does not fit is refused; what reports a change is sent in any
/// case. Answers that are streamed are counted where they are made.
pub(crate) fn charge_answer(
    budget: &AnswerBudget,
    caller: &Caller,
    method: &Method,
    response: Response,
) -> Response {
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| *size > SMALL_ANSWER) else { return response };
    let permit = match *method == Method::GET || *method == Method::HEAD {
        true => match budget.reserve(caller, size) {
            Ok(permit) => Some(permit),
            Err(problem) => return problem.into_response(),
        },
        false => budget.reserve_available(caller, size),
    };
    let Some(permit) = permit else { return response };
    let permit = Arc::new(permit);
    let (parts, body) = response.into_parts();
    // A body of a known size is in memory: its frames are there.
    let body = body.map_frame(move |frame| frame.map_data(|bytes| charged(bytes, permit.clone())));
    Response::from_parts(parts, Body::new(body))
}
