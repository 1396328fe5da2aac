//! Responses that are built and sent page by page.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::header;
use pointsman_core::ErrorChain;
use pointsman_core::store::StoreError;

use super::{MAX_UNCOUNTED_RESPONSE_BYTES, ResponseMemoryBudget, ResponseMemoryPermit};
use crate::auth::Caller;
use crate::problem::Problem;

/// The memory of the page that is being sent.
#[derive(Debug)]
pub(crate) struct PageMemory {
    budget: Arc<ResponseMemoryBudget>,
    caller: Caller,
    /// The memory reserved until the response has ended.
    base_permit: Option<ResponseMemoryPermit>,
    /// Additional memory for a larger page.
    extra_permit: Option<ResponseMemoryPermit>,
}

impl PageMemory {
    /// Reserves memory for the first page of a response.
    pub(crate) fn reserve_for_first_page(
        budget: &Arc<ResponseMemoryBudget>,
        caller: &Caller,
        bytes: usize,
    ) -> Result<Self, Problem> {
        let base_permit =
            (bytes > MAX_UNCOUNTED_RESPONSE_BYTES).then(|| budget.reserve(caller, bytes)).transpose()?;
        Ok(Self { budget: budget.clone(), caller: caller.clone(), base_permit, extra_permit: None })
    }

    /// Reserves memory for the next page. An error means that the response must be aborted.
    pub(crate) fn reserve_for_next_page(&mut self, bytes: usize) -> io::Result<()> {
        self.extra_permit = None;
        let reserved =
            self.base_permit.as_ref().map_or(MAX_UNCOUNTED_RESPONSE_BYTES, ResponseMemoryPermit::bytes);
        if let Some(missing) = bytes.checked_sub(reserved).filter(|missing| *missing > 0) {
            let extra_permit = self.budget.reserve(&self.caller, missing);
            self.extra_permit =
                Some(extra_permit.map_err(|_| {
                    io::Error::other("there is no response memory for the rest of the response")
                })?);
        }
        Ok(())
    }
}

/// Responds with chunks of JSON as they are produced. The first chunk is produced before the response begins, so that a
/// store error or a lack of memory becomes an error response. While later chunks are produced, an error or a lack of
/// memory aborts the response.
pub(crate) async fn stream_json_chunks(
    budget: &Arc<ResponseMemoryBudget>,
    caller: &Caller,
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<Response, Problem> {
    let mut chunks = Box::pin(chunks);
    let first = chunks.next().await.transpose().map_err(problem_from_io_error)?.unwrap_or_default();
    let mut memory = PageMemory::reserve_for_first_page(budget, caller, first.len())?;
    let rest = chunks.map(move |chunk| {
        let chunk = chunk?;
        memory.reserve_for_next_page(chunk.len())?;
        Ok::<_, io::Error>(chunk)
    });
    let body = Body::from_stream(stream::iter([Ok(first)]).chain(rest));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn problem_from_io_error(error: io::Error) -> Problem {
    match error.downcast::<StoreError>() {
        Ok(error) => error.into(),
        Err(error) => {
            tracing::error!(
                error = %ErrorChain(&error),
                "could not build a response; the client got 500. If this persists, report it with this error"
            );
            Problem::internal_error("the response could not be built; see the server's log")
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::testing::{test_caller, test_server_limits};
    use super::*;

    fn test_budget() -> Arc<ResponseMemoryBudget> {
        Arc::new(ResponseMemoryBudget::new(&test_server_limits(), Arc::default()))
    }

    fn test_chunk(kib: usize) -> io::Result<Bytes> {
        Ok(vec![b'x'; kib << 10].into())
    }

    #[tokio::test]
    async fn response_memory_grows_with_a_larger_page_and_is_released_at_the_end() {
        let budget = test_budget();
        let chunks = stream::iter([test_chunk(100), test_chunk(10), test_chunk(300)]);
        let response = stream_json_chunks(&budget, &test_caller("one"), chunks).await.unwrap();
        assert_eq!(budget.used_bytes(), 100 << 10);
        let mut body = response.into_body();
        let mut used = Vec::new();
        while let Some(frame) = body.frame().await {
            frame.unwrap();
            used.push(budget.used_bytes() >> 10);
        }
        assert_eq!(used, [100, 100, 300]);
        drop(body);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[tokio::test]
    async fn a_page_without_memory_aborts_the_response() {
        let budget = test_budget();
        let response =
            stream_json_chunks(&budget, &test_caller("one"), stream::iter([test_chunk(1), test_chunk(900)]))
                .await
                .unwrap();
        let _held = budget.reserve(&test_caller("one"), 500 << 10).unwrap();
        assert!(response.into_body().collect().await.is_err());
        let refused = stream_json_chunks(&budget, &test_caller("one"), stream::iter([test_chunk(900)])).await;
        assert_eq!(refused.unwrap_err().into_response().status(), 503);
    }

    #[tokio::test]
    async fn a_store_error_before_the_first_page_is_a_503() {
        let failed = stream::iter([Err(io::Error::other(StoreError::Closed))]);
        let response = stream_json_chunks(&test_budget(), &test_caller("one"), failed).await;
        assert_eq!(response.unwrap_err().into_response().status(), 503);
    }
}
