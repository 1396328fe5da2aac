//! A stretch of the journal as an EventSeq.
//!
//! The answer is decided by the first match: until then nothing is sent, and the request may wait. After it,
//! everything up to the head at that time is streamed page by page. If something is forgotten while an answer
//! streams, the connection breaks off: a complete answer never has a gap.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::{Uri, header};
use pointsman_api::EventSeq;
use pointsman_core::store::StoreError;
use pointsman_core::time::parse_http_duration;
use pointsman_core::{Event, EventId};
use tokio::time::{Instant, timeout_at};

use super::Watch;
use crate::app::App;
use crate::auth::{Caller, Viewer};
use crate::limits::PageMemory;
use crate::paging::{TARGET_BYTES, page_bytes, piece};
use crate::problem::Problem;
use crate::query::Query;
use crate::walk::{GATHER, Step, Walk};

/// How long a search that found nothing may go on beyond its deadline, so that a reader who does not wait
/// still learns of an event that lies behind many others.
const SEARCH_ON: Duration = Duration::from_millis(150);
/// The same for a reader that has not been shown anything at all: one that does not wait would otherwise be told
/// by a store that is merely slow that there is nothing.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// Reads the journal as an EventSeq, waiting for the first match until the timeout.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    operation_id = "read_events",
    tag = "events",
    params(
        ("return" = Option<String>, Query, description = "a type or one of its ancestors; `Event` is every type"),
        ("after" = Option<u64>, Query, description = "an EventId; required unless `limit` is negative"),
        ("timeout" = Option<String>, Query, description = "how long to wait: `60`, `60s`, `1h2m3s` or ISO 8601"),
        ("limit" = Option<i64>, Query, description = "at most so many; a negative one reads backwards from the newest"),
        ("path" = Option<String>, Query, description = "`/` everything, `/a/` the tree below, `/a/*` its children, `/a` that"),
        ("key" = Option<String>, Query, description = "an object"),
        ("tenant" = Option<String>, Query, description = "a tenant"),
    ),
    responses((status = 200, description = "What there is", body = EventSeq)),
)]
pub(crate) async fn read(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Watch::query(&uri, &Terms::PARAMETERS)?;
    let watch = Watch::of(&query, &caller)?;
    answer(&app, &caller, watch, &Terms::of(&query)?).await
}

/// How long a reader waits, and how much it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    timeout: Duration,
    limit: Limit,
}

impl Terms {
    pub(crate) const PARAMETERS: [&str; 2] = ["timeout", "limit"];

    pub(crate) fn of(query: &Query) -> Result<Self, Problem> {
        let limit = query.read("limit", limit)?.unwrap_or(Limit::None);
        Ok(Self { timeout: timeout(query)?, limit })
    }
}

/// How long a query is willing to wait.
pub(crate) fn timeout(query: &Query) -> Result<Duration, Problem> {
    Ok(query.read("timeout", parse_http_duration)?.unwrap_or_default())
}

/// The EventSeq that a reader is answered with.
pub(crate) async fn answer(
    app: &App,
    caller: &Caller,
    watch: Watch,
    terms: &Terms,
) -> Result<Response, Problem> {
    let wanted = terms.limit.wanted();
    let walk = match terms.limit {
        Limit::Backwards(_) => Walk::backwards(app.clone(), watch.filter, watch.after),
        Limit::None | Limit::Forwards(_) => Walk::forwards(app.clone(), watch.filter, after(watch.after)?),
    };
    // A deadline beyond what the clock can count never comes.
    let deadline = Instant::now().checked_add(terms.timeout);
    let waiting = (!terms.timeout.is_zero()).then(|| app.streams.open(caller)).transpose()?;
    let found = first(app, caller, walk, wanted, deadline).await?;
    drop(waiting);
    Ok(match found {
        Found::Events { events, walk } => {
            let page = page_bytes(&events);
            // If others follow, they are about as large as pages are meant to be.
            let bytes = if walk.has_ended() { page } else { page.max(TARGET_BYTES) };
            let memory = PageMemory::reserve(&app.responses, caller, bytes)?;
            let answer = Answer { walk, wanted, page: events.into(), begun: false, memory };
            let text = stream::unfold(Some(answer), Answer::chunk);
            ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(text)).into_response()
        }
        Found::Nothing { head, last } => nothing(head, last),
        Found::Torn { head } => torn(head),
    })
}

/// The cursor of a reader that cannot do without one.
pub(crate) fn after(after: Option<EventId>) -> Result<EventId, Problem> {
    after.ok_or_else(|| Problem::malformed("say which EventId to read after").parameter("after"))
}

pub(crate) fn nothing(head: EventId, last: EventId) -> Response {
    axum::Json(EventSeq::Empty { event_id: head.get(), last_event_id: last.get() }).into_response()
}

pub(crate) fn torn(head: EventId) -> Response {
    axum::Json(EventSeq::Torn { event_id: head.get() }).into_response()
}

/// How many events, and from which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    None,
    Forwards(usize),
    Backwards(usize),
}

impl Limit {
    fn wanted(self) -> usize {
        match self {
            Self::None => usize::MAX,
            Self::Forwards(count) | Self::Backwards(count) => count,
        }
    }
}

/// A whole number other than zero. What is too large for any journal is as good as the largest.
fn limit(text: &str) -> Result<Limit, &'static str> {
    let (digits, backwards) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let count = digits.parse().unwrap_or(usize::MAX);
    match (is_number && count > 0, backwards) {
        (false, _) => Err("a limit is a whole number other than 0"),
        (true, false) => Ok(Limit::Forwards(count)),
        (true, true) => Ok(Limit::Backwards(count)),
    }
}

/// What decides the answer.
pub(crate) enum Found {
    Events { events: Vec<Arc<Event>>, walk: Walk },
    Nothing { head: EventId, last: EventId },
    Torn { head: EventId },
}

/// Walks to the first match, waiting for it until the deadline. Where the store does not answer in time, nothing has been
/// found, and the reader goes on where it was.
pub(crate) async fn first(
    app: &App,
    caller: &Caller,
    mut walk: Walk,
    wanted: usize,
    deadline: Option<Instant>,
) -> Result<Found, StoreError> {
    let cursor = walk.reached();
    let mut step = within(deadline.map(first_look), walk.step(wanted)).await.transpose()?;
    let mut last = false;
    // A busy store must not hold up an answer that is due.
    while let Some(met) = step {
        match met {
            Step::Events(events) => return Ok(Found::Events { events, walk }),
            Step::Torn { head } => return Ok(Found::Torn { head }),
            Step::Nothing => {}
            Step::End if last => break,
            Step::End => match wait(app, caller, &mut walk, deadline).await {
                Waited::Grown => {
                    gather(app, cursor, deadline).await;
                    walk.go_on();
                }
                // What was journaled before the stop was announced is still told, the announcement among it.
                Waited::Stopping => {
                    last = true;
                    walk.go_on();
                }
                Waited::Over => break,
            },
        }
        let give_up = deadline.map(|deadline| deadline + SEARCH_ON);
        step = match give_up.is_some_and(|end| end <= Instant::now()) {
            true => None,
            false => within(give_up, walk.step(wanted)).await.transpose()?,
        };
    }
    Ok(Found::Nothing { head: walk.head(), last: walk.reached() })
}

/// Until when a first look may take that serves an answer due at `deadline`.
pub(crate) fn first_look(deadline: Instant) -> Instant {
    deadline + FIRST_LOOK
}

/// What comes in time. Without an end all does.
pub(crate) async fn within<T>(end: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match end {
        Some(end) => timeout_at(end, work).await.ok(),
        None => Some(work.await),
    }
}

/// How a wait for more ended.
enum Waited {
    Grown,
    Stopping,
    /// The time is up, or the caller's token has been taken back.
    Over,
}

/// Waits until there is more to look at.
async fn wait(app: &App, caller: &Caller, walk: &mut Walk, deadline: Option<Instant>) -> Waited {
    let late = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = app.stopping.cancelled() => Waited::Stopping,
        () = app.revoked(caller) => Waited::Over,
        () = walk.grown() => Waited::Grown,
        () = late => Waited::Over,
    }
}

/// Lets more come for a reader whose last event, by its id, is only just past.
async fn gather(app: &App, cursor: EventId, deadline: Option<Instant>) {
    let passed = app.now().since(cursor.timestamp());
    let pause = Instant::now() + GATHER.saturating_sub(passed);
    tokio::time::sleep_until(deadline.map_or(pause, |deadline| pause.min(deadline))).await;
}

/// A NonEmpty on its way out.
struct Answer {
    walk: Walk,
    wanted: usize,
    /// Found, but not sent yet.
    page: VecDeque<Arc<Event>>,
    begun: bool,
    /// Of the page.
    memory: PageMemory,
}

type Chunk = Result<Bytes, io::Error>;

impl Answer {
    /// The next piece of the text; the last one has no successor.
    async fn chunk(answer: Option<Self>) -> Option<(Chunk, Option<Self>)> {
        let mut answer = answer?;
        while answer.page.is_empty() {
            match answer.walk.step(answer.wanted).await {
                Ok(Step::Events(events)) => match answer.memory.fit(page_bytes(&events)) {
                    Ok(()) => answer.page = events.into(),
                    Err(error) => return Some((Err(error), None)),
                },
                Ok(Step::Nothing) => {}
                Ok(Step::End) => return Some((Ok(Bytes::from_static(b"]}")), None)),
                Ok(Step::Torn { .. }) => {
                    return Some((Err(io::Error::other("the rest has been forgotten")), None));
                }
                Err(error) => return Some((Err(io::Error::other(error)), None)),
            }
        }
        let text = answer.piece();
        Some((Ok(text.into()), Some(answer)))
    }

    /// As much of the page as goes out at a time.
    fn piece(&mut self) -> String {
        let opening = match self.begun {
            false => format!("{{\"TYPE\":\"NonEmpty\",\"eventId\":{},\"eventSnapshots\":[", self.walk.head()),
            true => String::new(),
        };
        let before = self.page.len();
        let begun = &mut self.begun;
        let text = piece(&mut self.page, |event, text| {
            if std::mem::replace(begun, true) {
                text.push(',');
            }
            text.push_str(&event.to_json());
        });
        let count = before - self.page.len();
        self.wanted -= count.min(self.wanted);
        self.walk.learn(count, text.len());
        opening + &text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_any_whole_number_but_zero() {
        assert_eq!(limit("3"), Ok(Limit::Forwards(3)));
        assert_eq!(limit("-3"), Ok(Limit::Backwards(3)));
        assert_eq!(limit("99999999999999999999999"), Ok(Limit::Forwards(usize::MAX)));
        for bad in ["", "-", "0", "-0", "+1", "1.5", "1e3", " 1", "x", "--1"] {
            assert!(limit(bad).is_err(), "{bad:?}");
        }
    }
}
