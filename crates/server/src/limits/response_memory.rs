//! Responses whose memory is counted until they have been written to the client.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::Method;
use http_body_util::BodyExt;

use super::{ResponseMemoryBudget, ResponseMemoryPermit};
use crate::auth::Caller;

/// Responses up to this size are not counted: their memory is bounded by the number of connections.
pub(crate) const MAX_UNCOUNTED_RESPONSE_BYTES: usize = 64 << 10;

/// Marks the response to a claim, which has its own part of the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimResponseMarker;

/// Bytes with their permit.
struct BytesWithPermit {
    bytes: Bytes,
    _permit: Arc<ResponseMemoryPermit>,
}

impl AsRef<[u8]> for BytesWithPermit {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Attaches a permit to bytes. The permit is released when the connection has written the bytes, not when the body has
/// ended.
fn keep_permit_with_bytes(bytes: Bytes, permit: Arc<ResponseMemoryPermit>) -> Bytes {
    Bytes::from_owner(BytesWithPermit { bytes, _permit: permit })
}

/// Keeps a permit reserved until the stream has ended.
pub(crate) fn keep_permit_until_stream_end<S: Stream>(
    stream: S,
    permit: Option<ResponseMemoryPermit>,
) -> impl Stream<Item = S::Item> {
    stream.inspect(move |_| {
        let _kept = &permit;
    })
}

/// Reserves memory for a response that was built whole, until it has been written to the client. A read whose response
/// does not fit is refused; the response to a change is always sent. Memory for streamed responses is reserved where
/// they are built.
pub(crate) fn reserve_response_memory(
    budget: &ResponseMemoryBudget,
    caller: &Caller,
    method: &Method,
    response: Response,
) -> Response {
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| *size > MAX_UNCOUNTED_RESPONSE_BYTES) else { return response };
    let permit = if response.extensions().get::<ClaimResponseMarker>().is_some() {
        budget.reserve_up_to_for_claim(caller, size)
    } else if *method == Method::GET || *method == Method::HEAD {
        match budget.reserve(caller, size) {
            Ok(permit) => Some(permit),
            Err(problem) => return problem.into_response(),
        }
    } else {
        budget.reserve_up_to(caller, size)
    };
    let Some(permit) = permit else { return response };
    let permit = Arc::new(permit);
    let (parts, body) = response.into_parts();
    // A body of a known size is in memory as a whole.
    let body =
        body.map_frame(move |frame| frame.map_data(|bytes| keep_permit_with_bytes(bytes, permit.clone())));
    Response::from_parts(parts, Body::new(body))
}
