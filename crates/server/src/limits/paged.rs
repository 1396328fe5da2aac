<<<<<<< ||||||| //! Answers that are made and sent page by page.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::header;
use pointsman_core::store::StoreError;

use super::{ResponseBudget, ResponsePermit, SMALL_RESPONSE};
use crate::auth::Caller;
use crate::problem::Problem;

/// The memory of the page that is being sent.
#[derive(Debug)]
pub(crate) struct PageMemory {
    budget: Arc<ResponseBudget>,
    caller: Caller,
    /// Kept until the answer has ended.
    base: Option<ResponsePermit>,
    /// For a page that needs more.
    more: Option<ResponsePermit>,
}

impl PageMemory {
    /// Reserves memory for the first page of an answer.
    pub(crate) fn reserve(
        budget: &Arc<ResponseBudget>,
        caller: &Caller,
        bytes: usize,
    ) -> Result<Self, Problem> {
        let base = (bytes > SMALL_RESPONSE).then(|| budget.reserve(caller, bytes)).transpose()?;
        Ok(Self { budget: budget.clone(), caller: caller.clone(), base, more: None })
    }

    /// Makes sure that there is memory for the next page. Without it the answer has to break off.
    pub(crate) fn fit(&mut self, bytes: usize) -> io::Result<()> {
        self.more = None;
        let reserved = self.base.as_ref().map_or(SMALL_RESPONSE, ResponsePermit::bytes);
        if let Some(missing) = bytes.checked_sub(reserved).filter(|missing| *missing > 0) {
            let more = self.budget.reserve(&self.caller, missing);
            self.more =
                Some(more.map_err(|_| io::Error::other("there is no memory for the rest of the answer"))?);
        }
        Ok(())
    }
}

/// Answers with pieces of JSON as they are made. The first one is made before the answer begins, so that a store that
/// fails and memory that is used up have answers of their own; later, either breaks the answer off.
pub(crate) async fn answer_in_pieces(
    budget: &Arc<ResponseBudget>,
    caller: &Caller,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<Response, Problem> {
    let mut pieces = Box::pin(pieces);
    let first = pieces.next().await.transpose().map_err(problem_of)?.unwrap_or_default();
    let mut memory = PageMemory::reserve(budget, caller, first.len())?;
    let rest = pieces.map(move |piece| {
        let piece = piece?;
        memory.fit(piece.len())?;
        Ok::<_, io::Error>(piece)
    });
    let body = Body::from_stream(stream::iter([Ok(first)]).chain(rest));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn problem_of(error: io::Error) -> Problem {
    match error.downcast::<StoreError>() {
        Ok(error) => error.into(),
        Err(error) => {
            tracing::error!(%error, "could not build a response; the client got 500");
            Problem::broken("the response could not be built; see the server's log")
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::testing::{caller, limits};
    use super::*;

    fn budget() -> Arc<ResponseBudget> {
        Arc::new(ResponseBudget::new(&limits(), Arc::default()))
    }

    fn piece(kib: usize) -> io::Result<Bytes> {
        Ok(vec![b'x'; kib << 10].into())
    }

    #[tokio::test]
    async fn memory_is_held_for_the_largest_page_and_given_back() {
        let budget = budget();
        let pieces = stream::iter([piece(100), piece(10), piece(300)]);
        let answer = answer_in_pieces(&budget, &caller("one"), pieces).await.unwrap();
        assert_eq!(budget.used(), 100 << 10);
        let mut body = answer.into_body();
        let mut used = Vec::new();
        while let Some(frame) = body.frame().await {
            frame.unwrap();
            used.push(budget.used() >> 10);
        }
        assert_eq!(used, [100, 100, 300]);
        drop(body);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_page_without_memory_breaks_the_answer_off() {
        let budget = budget();
        let answer =
            answer_in_pieces(&budget, &caller("one"), stream::iter([piece(1), piece(900)])).await.unwrap();
        let _held = budget.reserve(&caller("one"), 500 << 10).unwrap();
        assert!(answer.into_body().collect().await.is_err());
        let refused = answer_in_pieces(&budget, &caller("one"), stream::iter([piece(900)])).await;
        assert_eq!(refused.unwrap_err().into_response().status(), 503);
    }

    #[tokio::test]
    async fn a_store_that_fails_at_once_has_its_own_answer() {
        let failed = stream::iter([Err(io::Error::other(StoreError::Closed))]);
        let answer = answer_in_pieces(&budget(), &caller("one"), failed).await;
        assert_eq!(answer.unwrap_err().into_response().status(), 503);
    }
}
======= //! Answers that are made and sent page by page.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::header;
use pointsman_core::store::StoreError;

use super::{ResponseBudget, ResponsePermit, SMALL_RESPONSE};
use crate::auth::Caller;
use crate::problem::Problem;

/// The memory of the page that is being sent.
#[derive(Debug)]
pub(crate) struct PageMemory {
    budget: Arc<ResponseBudget>,
    caller: Caller,
    /// Kept until the answer has ended.
    base: Option<ResponsePermit>,
    /// For a page that needs more.
    more: Option<ResponsePermit>,
}

impl PageMemory {
    /// Reserves memory for the first page of an answer.
    pub(crate) fn reserve(
        budget: &Arc<ResponseBudget>,
        caller: &Caller,
        bytes: usize,
    ) -> Result<Self, Problem> {
        let base = (bytes > SMALL_RESPONSE).then(|| budget.reserve(caller, bytes)).transpose()?;
        Ok(Self { budget: budget.clone(), caller: caller.clone(), base, more: None })
    }

    /// Makes sure that there is memory for the next page. Without it the answer has to break off.
    pub(crate) fn fit(&mut self, bytes: usize) -> io::Result<()> {
        self.more = None;
        let reserved = self.base.as_ref().map_or(SMALL_RESPONSE, ResponsePermit::bytes);
        if let Some(missing) = bytes.checked_sub(reserved).filter(|missing| *missing > 0) {
            let more = self.budget.reserve(&self.caller, missing);
            self.more =
                Some(more.map_err(|_| io::Error::other("there is no memory for the rest of the answer"))?);
        }
        Ok(())
    }
}

/// Answers with pieces of JSON as they are made. The first one is made before the answer begins, so that a store that
/// fails and memory that is used up have answers of their own; later, either breaks the answer off.
pub(crate) async fn answer_in_pieces(
    budget: &Arc<ResponseBudget>,
    caller: &Caller,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Result<Response, Problem> {
    let mut pieces = Box::pin(pieces);
    let first = pieces.next().await.transpose().map_err(problem_of)?.unwrap_or_default();
    let mut memory = PageMemory::reserve(budget, caller, first.len())?;
    let rest = pieces.map(move |piece| {
        let piece = piece?;
        memory.fit(piece.len())?;
        Ok::<_, io::Error>(piece)
    });
    let body = Body::from_stream(stream::iter([Ok(first)]).chain(rest));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

fn problem_of(error: io::Error) -> Problem {
    match error.downcast::<StoreError>() {
        Ok(error) => error.into(),
        Err(error) => {
            tracing::error!(%error, "could not build a response; the client got 500");
            Problem::internal_error("the response could not be built; see the server's log")
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::testing::{caller, limits};
    use super::*;

    fn budget() -> Arc<ResponseBudget> {
        Arc::new(ResponseBudget::new(&limits(), Arc::default()))
    }

    fn piece(kib: usize) -> io::Result<Bytes> {
        Ok(vec![b'x'; kib << 10].into())
    }

    #[tokio::test]
    async fn memory_is_held_for_the_largest_page_and_given_back() {
        let budget = budget();
        let pieces = stream::iter([piece(100), piece(10), piece(300)]);
        let answer = answer_in_pieces(&budget, &caller("one"), pieces).await.unwrap();
        assert_eq!(budget.used(), 100 << 10);
        let mut body = answer.into_body();
        let mut used = Vec::new();
        while let Some(frame) = body.frame().await {
            frame.unwrap();
            used.push(budget.used() >> 10);
        }
        assert_eq!(used, [100, 100, 300]);
        drop(body);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_page_without_memory_breaks_the_answer_off() {
        let budget = budget();
        let answer =
            answer_in_pieces(&budget, &caller("one"), stream::iter([piece(1), piece(900)])).await.unwrap();
        let _held = budget.reserve(&caller("one"), 500 << 10).unwrap();
        assert!(answer.into_body().collect().await.is_err());
        let refused = answer_in_pieces(&budget, &caller("one"), stream::iter([piece(900)])).await;
        assert_eq!(refused.unwrap_err().into_response().status(), 503);
    }

    #[tokio::test]
    async fn a_store_that_fails_at_once_has_its_own_answer() {
        let failed = stream::iter([Err(io::Error::other(StoreError::Closed))]);
        let answer = answer_in_pieces(&budget(), &caller("one"), failed).await;
        assert_eq!(answer.unwrap_err().into_response().status(), 503);
    }
}
>>>>>>>