//! Request bodies: bounded in size, in time and in all.
//!
//! A body that is refused, or that nobody wanted, is still read for a while and thrown away: a client that
//! writes its whole request before it reads would otherwise meet a reset connection in place of the answer.

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

use crate::app::App;
use crate::problem::Problem;

/// The largest body that is taken.
pub(crate) const MAX_BODY: usize = 16 << 20;
/// How fast a body must come.
const PACE: Pace =
    Pace { grace: Duration::from_secs(10), slowest: 16 << 10, longest: Duration::from_secs(300) };
/// How much of an unwanted body is read, and for how long.
const DRAIN_BYTES: usize = 64 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// A body that was read to its end.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    /// Its share of the budget, until the request is answered.
    _share: Option<OwnedSemaphorePermit>,
}

impl FromRequest<App> for Received {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        receive(request.into_body(), &app.body_budget, PACE).await
    }
}

/// Reads a body to its end, within all bounds.
async fn receive(mut body: Body, budget: &Arc<Semaphore>, pace: Pace) -> Result<Received, Problem> {
    let too_large = || Problem::too_large(format!("a body has at most {MAX_BODY} bytes"));
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    let mut share: Option<OwnedSemaphorePermit> = None;
    let begun = Instant::now();
    loop {
        let frame = match timeout_at(pace.deadline(begun, bytes.len()), body.frame()).await {
            Err(_) => return Err(Problem::too_slow("the body came too slowly")),
            Ok(None) => return Ok(Received { bytes: bytes.freeze(), _share: share }),
            Ok(Some(Err(_))) => return Err(Problem::malformed("the body broke off or is framed wrongly")),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BODY {
            return Err(too_large());
        }
        let more = budget.clone().try_acquire_many_owned(data.len() as u32);
        let more = more.map_err(|_| Problem::unavailable("too many large requests at once"))?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        bytes.extend_from_slice(&data);
    }
}

#[derive(Clone, Copy, Debug)]
struct Pace {
    /// What a sender has before its speed counts.
    grace: Duration,
    /// The slowest that it may be after that, in bytes a second.
    slowest: u32,
    /// The longest that any body may take.
    longest: Duration,
}

impl Pace {
    /// When a sender that has sent this much so far is too slow.
    fn deadline(self, begun: Instant, received: usize) -> Instant {
        let earned = Duration::from_secs(1) * u32::try_from(received).unwrap_or(u32::MAX) / self.slowest;
        begun + (self.grace + earned).min(self.longest)
    }
}

/// A body that its handler reads, and that can be drained when the handler has answered.
#[derive(Clone)]
pub(crate) struct SharedBody(Arc<Mutex<Inner>>);

struct Inner {
    body: Body,
    wanted: bool,
}

impl SharedBody {
    pub(crate) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(Inner { body, wanted: false })))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads what is left and throws it away, within bounds, while the answer is on its way. A client that
    /// waits for a `100 Continue` which nobody gave will not send anything.
    pub(crate) fn drain(self, waits_for_continue: bool) {
        let rest = self.with(|inner| !inner.body.is_end_stream() && (inner.wanted || !waits_for_continue));
        if !rest {
            return;
        }
        let mut body = self;
        tokio::spawn(timeout(DRAIN_TIME, async move {
            let mut read = 0;
            while let Some(Ok(frame)) = body.frame().await {
                read += frame.data_ref().map_or(0, Bytes::len);
                if read > DRAIN_BYTES {
                    break;
                }
            }
        }));
    }
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|inner| {
            inner.wanted = true;
            Pin::new(&mut inner.body).poll_frame(cx)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.with(|inner| inner.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|inner| inner.body.size_hint())
    }
}

/// Whether the client holds its body back until it is told to go on.
pub(crate) fn waits_for_continue(request: &Request) -> bool {
    let expect = request.headers().get(header::EXPECT);
    expect.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};

    use super::*;

    fn budget(bytes: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bytes))
    }

    async fn status(body: Body, budget: &Arc<Semaphore>, pace: Pace) -> u16 {
        use axum::response::IntoResponse;
        match receive(body, budget, pace).await {
            Ok(_) => 200,
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    #[test]
    fn a_sender_earns_its_time() {
        let begun = Instant::now();
        assert_eq!(PACE.deadline(begun, 0), begun + PACE.grace);
        assert_eq!(PACE.deadline(begun, 160 << 10), begun + PACE.grace + Duration::from_secs(10));
        assert_eq!(PACE.deadline(begun, MAX_BODY), begun + PACE.longest);
    }

    #[tokio::test]
    async fn a_sender_that_stops_is_not_waited_for() {
        let stalled =
            stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]).chain(stream::pending());
        let pace = Pace { grace: Duration::from_millis(20), ..PACE };
        assert_eq!(status(Body::from_stream(stalled), &budget(100), pace).await, 408);
    }

    #[tokio::test]
    async fn bodies_share_a_budget_and_give_it_back() {
        let budget = budget(10);
        let held = receive(Body::from("12345678"), &budget, PACE).await.ok();
        assert_eq!(status(Body::from("123"), &budget, PACE).await, 503);
        drop(held);
        assert_eq!(status(Body::from("123"), &budget, PACE).await, 200);
        assert_eq!(budget.available_permits(), 10);
    }
}
