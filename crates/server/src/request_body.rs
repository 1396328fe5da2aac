//! Request bodies, bounded in size, in duration and in total memory.
//!
//! A body that is refused or not needed is still read for a while and discarded: a client that writes its whole
//! request before it reads would otherwise see a reset connection instead of the response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use http::header;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::app_state::App;
use crate::problem::Problem;

/// Maximum size of a body.
pub(crate) const MAX_BODY_BYTES: usize = 16 << 20;
/// Timeouts for receiving a body.
const RECEIVE_TIMEOUTS: ReceiveTimeouts = ReceiveTimeouts {
    grace_period: Duration::from_secs(10),
    min_bytes_per_second: 16 << 10,
    max_duration: Duration::from_secs(300),
};
/// Maximum bytes that are read and discarded of a body that is not needed.
const MAX_DRAIN_BYTES: usize = 64 << 20;
/// Maximum time for reading and discarding a body that is not needed.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(5);

/// A body that was received completely.
pub(crate) struct ReceivedBody {
    pub(crate) bytes: Bytes,
    /// Permit of the body budget, released when the request has been answered.
    _budget_permit: Option<OwnedSemaphorePermit>,
}

impl FromRequest<App> for ReceivedBody {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        receive_body(request.into_body(), &app.request_body_budget, RECEIVE_TIMEOUTS).await
    }
}

/// Receives a body completely, within all limits.
async fn receive_body(
    mut body: Body,
    budget: &Arc<Semaphore>,
    timeouts: ReceiveTimeouts,
) -> Result<ReceivedBody, Problem> {
    let too_large = || Problem::too_large(format!("a body has at most {MAX_BODY_BYTES} bytes"));
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    let mut budget_permit: Option<OwnedSemaphorePermit> = None;
    let started_at = Instant::now();
    loop {
        let frame = match timeout_at(timeouts.deadline(started_at, bytes.len()), body.frame()).await {
            Err(_) => return Err(Problem::body_too_slow("the body arrived too slowly")),
            Ok(None) => return Ok(ReceivedBody { bytes: bytes.freeze(), _budget_permit: budget_permit }),
            Ok(Some(Err(_))) => {
                return Err(Problem::malformed("the body is incomplete or framed incorrectly"));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        let permit = budget.clone().try_acquire_many_owned(data.len() as u32);
        let permit =
            permit.map_err(|_| Problem::unavailable("too many large request bodies at once; try again"))?;
        match &mut budget_permit {
            Some(budget_permit) => budget_permit.merge(permit),
            None => budget_permit = Some(permit),
        }
        bytes.extend_from_slice(&data);
    }
}

#[derive(Clone, Copy, Debug)]
struct ReceiveTimeouts {
    /// Time before the minimum speed applies.
    grace_period: Duration,
    /// Minimum average speed after the grace period.
    min_bytes_per_second: u32,
    /// Maximum duration for any body.
    max_duration: Duration,
}

impl ReceiveTimeouts {
    /// The time at which a sender that has sent `received` bytes so far is too slow.
    fn deadline(self, started_at: Instant, received: usize) -> Instant {
        let earned =
            Duration::from_secs(1) * u32::try_from(received).unwrap_or(u32::MAX) / self.min_bytes_per_second;
        started_at + (self.grace_period + earned).min(self.max_duration)
    }
}

/// A request body that the call reads. The part that the call leaves unread can be drained after its response.
#[derive(Clone)]
pub(crate) struct DrainableBody(Arc<Mutex<DrainableBodyState>>);

struct DrainableBodyState {
    body: Body,
    was_polled: bool,
}

impl DrainableBody {
    pub(crate) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(DrainableBodyState { body, was_polled: false })))
    }

    fn with_state<T>(&self, use_state: impl FnOnce(&mut DrainableBodyState) -> T) -> T {
        use_state(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads and discards the rest of the body, within limits, while the response is sent. A client that waits for a
    /// `100 Continue` that was not sent will not send a body.
    pub(crate) fn spawn_drain(self, expects_continue: bool) {
        let rest =
            self.with_state(|state| !state.body.is_end_stream() && (state.was_polled || !expects_continue));
        if !rest {
            return;
        }
        let mut body = self;
        tokio::spawn(timeout(MAX_DRAIN_TIME, async move {
            let mut read = 0;
            while let Some(Ok(frame)) = body.frame().await {
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > MAX_DRAIN_BYTES {
                    break;
                }
            }
        }));
    }
}

impl HttpBody for DrainableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with_state(|state| {
            state.was_polled = true;
            Pin::new(&mut state.body).poll_frame(cx)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.with_state(|state| state.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with_state(|state| state.body.size_hint())
    }
}

/// Whether the client waits for `100 Continue` before it sends its body.
pub(crate) fn expects_continue(request: &Request) -> bool {
    let expect = request.headers().get(header::EXPECT);
    expect.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};

    use super::*;

    fn new_body_budget(bytes: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bytes))
    }

    async fn receive_body_http_status(body: Body, budget: &Arc<Semaphore>, timeouts: ReceiveTimeouts) -> u16 {
        use axum::response::IntoResponse;
        match receive_body(body, budget, timeouts).await {
            Ok(_) => 200,
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    #[test]
    fn the_deadline_grows_with_received_bytes() {
        let started_at = Instant::now();
        assert_eq!(RECEIVE_TIMEOUTS.deadline(started_at, 0), started_at + RECEIVE_TIMEOUTS.grace_period);
        assert_eq!(
            RECEIVE_TIMEOUTS.deadline(started_at, 160 << 10),
            started_at + RECEIVE_TIMEOUTS.grace_period + Duration::from_secs(10)
        );
        assert_eq!(
            RECEIVE_TIMEOUTS.deadline(started_at, MAX_BODY_BYTES),
            started_at + RECEIVE_TIMEOUTS.max_duration
        );
    }

    #[tokio::test]
    async fn a_stalled_sender_times_out() {
        let stalled =
            stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]).chain(stream::pending());
        let timeouts = ReceiveTimeouts { grace_period: Duration::from_millis(20), ..RECEIVE_TIMEOUTS };
        assert_eq!(
            receive_body_http_status(Body::from_stream(stalled), &new_body_budget(100), timeouts).await,
            408
        );
    }

    #[tokio::test]
    async fn bodies_share_a_budget_and_release_it() {
        let budget = new_body_budget(10);
        let received = receive_body(Body::from("12345678"), &budget, RECEIVE_TIMEOUTS).await.ok();
        assert_eq!(receive_body_http_status(Body::from("123"), &budget, RECEIVE_TIMEOUTS).await, 503);
        drop(received);
        assert_eq!(receive_body_http_status(Body::from("123"), &budget, RECEIVE_TIMEOUTS).await, 200);
        assert_eq!(budget.available_permits(), 10);
    }
}
