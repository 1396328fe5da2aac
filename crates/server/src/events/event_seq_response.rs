//! Events of the journal as an EventSeq.
//!
//! The first match decides the response: until then nothing is sent, and the request may wait. Then all matches up to
//! the head at that time are streamed page by page. If events expire while a response is streamed, the connection is
//! aborted: a complete response never has a gap.

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

use super::EventQuery;
use crate::app_state::App;
use crate::auth::{Caller, Viewer};
use crate::journal_paging::{TARGET_PAGE_BYTES, encode_event_chunk, page_memory_bytes};
use crate::journal_reader::{BATCH_DELAY, JournalReader, PageReadOutcome};
use crate::limits::PageMemory;
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// Time that a search without a match may take beyond its deadline, so that a client that does not wait still gets an
/// event that follows many others.
const SEARCH_GRACE_PERIOD: Duration = Duration::from_millis(150);
/// Time that the first read may take beyond the deadline: otherwise a client that does not wait would get an empty
/// response from a store that is merely slow.
const FIRST_READ_GRACE_PERIOD: Duration = Duration::from_secs(1);

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
        ("limit" = Option<i64>, Query, description = "maximum number of events; a negative one reads backwards from the newest"),
        ("path" = Option<String>, Query, description = "`/` everything, `/a/` the tree below, `/a/*` its direct children, `/a` exactly that key"),
        ("key" = Option<String>, Query, description = "key of an object"),
        ("tenant" = Option<String>, Query, description = "only this tenant's events"),
    ),
    responses((status = 200, description = "The events, or an empty or torn EventSeq", body = EventSeq)),
)]
pub(crate) async fn read_events(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = EventQuery::query_from_uri(&uri, &TimeoutAndLimit::PARAMETERS)?;
    let event_query = EventQuery::from_query(&query, &caller)?;
    respond_with_event_seq(&app, &caller, event_query, &TimeoutAndLimit::from_query(&query)?).await
}

/// The parameters `timeout` and `limit` of a request that reads events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutAndLimit {
    timeout: Duration,
    limit: EventLimit,
}

impl TimeoutAndLimit {
    pub(crate) const PARAMETERS: [&str; 2] = ["timeout", "limit"];

    pub(crate) fn from_query(query: &RequestQuery) -> Result<Self, Problem> {
        let limit = query.parse_parameter_with("limit", parse_event_limit)?.unwrap_or(EventLimit::Unlimited);
        Ok(Self { timeout: parse_poll_timeout(query)?, limit })
    }
}

/// Parses the parameter `timeout`; zero if it is not given.
pub(crate) fn parse_poll_timeout(query: &RequestQuery) -> Result<Duration, Problem> {
    Ok(query.parse_parameter_with("timeout", parse_http_duration)?.unwrap_or_default())
}

/// Responds with an EventSeq.
pub(crate) async fn respond_with_event_seq(
    app: &App,
    caller: &Caller,
    event_query: EventQuery,
    options: &TimeoutAndLimit,
) -> Result<Response, Problem> {
    let max_events = options.limit.max_events();
    let reader = match options.limit {
        EventLimit::Backwards(_) => {
            JournalReader::new_backwards(app.clone(), event_query.filter, event_query.after)
        }
        EventLimit::Unlimited | EventLimit::Forwards(_) => {
            JournalReader::new_forwards(app.clone(), event_query.filter, require_cursor(event_query.after)?)
        }
    };
    // A deadline that the clock cannot represent never passes.
    let deadline = Instant::now().checked_add(options.timeout);
    let poll_permit =
        (!options.timeout.is_zero()).then(|| app.stream_limiter.try_acquire_permit(caller)).transpose()?;
    let found = find_first_match(app, caller, reader, max_events, deadline).await?;
    drop(poll_permit);
    Ok(match found {
        FirstMatchOutcome::Found { events, reader } => {
            let page = page_memory_bytes(&events);
            // Later pages have about the target size.
            let bytes = if reader.has_ended() { page } else { page.max(TARGET_PAGE_BYTES) };
            let memory = PageMemory::reserve_for_first_page(&app.response_memory_budget, caller, bytes)?;
            let seq = EventSeqStream {
                reader,
                remaining_event_count: max_events,
                unsent_events: events.into(),
                has_written_event: false,
                page_memory: memory,
            };
            let text = stream::unfold(Some(seq), EventSeqStream::next_chunk);
            ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(text)).into_response()
        }
        FirstMatchOutcome::NoMatchInTime { head, cursor } => empty_event_seq_response(head, cursor),
        FirstMatchOutcome::GapAfterCursor { head } => torn_event_seq_response(head),
    })
}

/// Unwraps a required cursor.
pub(crate) fn require_cursor(after: Option<EventId>) -> Result<EventId, Problem> {
    after.ok_or_else(|| {
        Problem::malformed("this call needs `after`: the EventId to read after").with_parameter("after")
    })
}

pub(crate) fn empty_event_seq_response(head: EventId, cursor: EventId) -> Response {
    axum::Json(EventSeq::Empty { event_id: head.get(), last_event_id: cursor.get() }).into_response()
}

pub(crate) fn torn_event_seq_response(head: EventId) -> Response {
    axum::Json(EventSeq::Torn { event_id: head.get() }).into_response()
}

/// The number of events to read, and the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventLimit {
    Unlimited,
    Forwards(usize),
    Backwards(usize),
}

impl EventLimit {
    fn max_events(self) -> usize {
        match self {
            Self::Unlimited => usize::MAX,
            Self::Forwards(count) | Self::Backwards(count) => count,
        }
    }
}

/// Parses a whole number other than zero. A number too large for `usize` counts as its maximum.
fn parse_event_limit(text: &str) -> Result<EventLimit, &'static str> {
    let (digits, backwards) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let count = digits.parse().unwrap_or(usize::MAX);
    match (is_number && count > 0, backwards) {
        (false, _) => Err("a limit is a whole number other than 0"),
        (true, false) => Ok(EventLimit::Forwards(count)),
        (true, true) => Ok(EventLimit::Backwards(count)),
    }
}

/// The result of the search for the first match.
pub(crate) enum FirstMatchOutcome {
    Found {
        events: Vec<Arc<Event>>,
        reader: JournalReader,
    },
    /// No event matched until the deadline. The client continues at the cursor.
    NoMatchInTime {
        head: EventId,
        cursor: EventId,
    },
    /// Events after the cursor have expired, or the cursor is above the newest event.
    GapAfterCursor {
        head: EventId,
    },
}

/// Finds the first match, waiting for it until the deadline. If the store does not respond in time, the result is empty
/// and the client continues at its cursor.
pub(crate) async fn find_first_match(
    app: &App,
    caller: &Caller,
    mut reader: JournalReader,
    max_events: usize,
    deadline: Option<Instant>,
) -> Result<FirstMatchOutcome, StoreError> {
    let cursor = reader.resume_cursor();
    let mut step = run_until_deadline(deadline.map(first_read_deadline), reader.read_page(max_events))
        .await
        .transpose()?;
    let mut is_draining = false;
    // A busy store must not delay a response whose deadline has passed.
    while let Some(current) = step {
        match current {
            PageReadOutcome::Events(events) => return Ok(FirstMatchOutcome::Found { events, reader }),
            PageReadOutcome::GapAfterCursor { head } => {
                return Ok(FirstMatchOutcome::GapAfterCursor { head });
            }
            PageReadOutcome::NoMatchInPage => {}
            PageReadOutcome::End if is_draining => break,
            PageReadOutcome::End => match wait_for_events(app, caller, &mut reader, deadline).await {
                WaitOutcome::NewEvents => {
                    wait_to_batch_events(app, cursor, deadline).await;
                    reader.start_next_read();
                }
                // Events up to the announcement of the stop are still sent, including the announcement.
                WaitOutcome::Stopping => {
                    is_draining = true;
                    reader.start_next_read();
                }
                WaitOutcome::TimedOutOrRevoked => break,
            },
        }
        let give_up = deadline.map(|deadline| deadline + SEARCH_GRACE_PERIOD);
        step = match give_up.is_some_and(|end| end <= Instant::now()) {
            true => None,
            false => run_until_deadline(give_up, reader.read_page(max_events)).await.transpose()?,
        };
    }
    Ok(FirstMatchOutcome::NoMatchInTime { head: reader.head(), cursor: reader.resume_cursor() })
}

/// The deadline of the first read for a response that is due at `deadline`.
pub(crate) fn first_read_deadline(deadline: Instant) -> Instant {
    deadline + FIRST_READ_GRACE_PERIOD
}

/// Runs a future until `end`; `None` if it does not finish. Without an end it always finishes.
pub(crate) async fn run_until_deadline<T>(end: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match end {
        Some(end) => timeout_at(end, work).await.ok(),
        None => Some(work.await),
    }
}

/// The reason why a wait for events ended.
enum WaitOutcome {
    NewEvents,
    Stopping,
    /// The deadline has passed, or the caller's token is no longer accepted.
    TimedOutOrRevoked,
}

/// Waits for new events until the deadline.
async fn wait_for_events(
    app: &App,
    caller: &Caller,
    reader: &mut JournalReader,
    deadline: Option<Instant>,
) -> WaitOutcome {
    let deadline_passed = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = app.stop_signal.cancelled() => WaitOutcome::Stopping,
        () = app.wait_until_token_revoked(caller) => WaitOutcome::TimedOutOrRevoked,
        () = reader.wait_for_match() => WaitOutcome::NewEvents,
        () = deadline_passed => WaitOutcome::TimedOutOrRevoked,
    }
}

/// Waits for more events to send together, if the client's cursor is only a few milliseconds old.
async fn wait_to_batch_events(app: &App, cursor: EventId, deadline: Option<Instant>) {
    let passed = app.now().duration_since(cursor.timestamp());
    let pause = Instant::now() + BATCH_DELAY.saturating_sub(passed);
    tokio::time::sleep_until(deadline.map_or(pause, |deadline| pause.min(deadline))).await;
}

/// A NonEmpty EventSeq that is being streamed.
struct EventSeqStream {
    reader: JournalReader,
    remaining_event_count: usize,
    /// Events that were read and not sent yet.
    unsent_events: VecDeque<Arc<Event>>,
    has_written_event: bool,
    /// The memory reserved for the page.
    page_memory: PageMemory,
}

type ChunkResult = Result<Bytes, io::Error>;

impl EventSeqStream {
    /// Produces the next chunk of the JSON; the state after the last chunk is `None`.
    async fn next_chunk(seq: Option<Self>) -> Option<(ChunkResult, Option<Self>)> {
        let mut seq = seq?;
        while seq.unsent_events.is_empty() {
            match seq.reader.read_page(seq.remaining_event_count).await {
                Ok(PageReadOutcome::Events(events)) => {
                    match seq.page_memory.reserve_for_next_page(page_memory_bytes(&events)) {
                        Ok(()) => seq.unsent_events = events.into(),
                        Err(error) => return Some((Err(error), None)),
                    }
                }
                Ok(PageReadOutcome::NoMatchInPage) => {}
                Ok(PageReadOutcome::End) => return Some((Ok(Bytes::from_static(b"]}")), None)),
                Ok(PageReadOutcome::GapAfterCursor { .. }) => {
                    return Some((Err(io::Error::other("the remaining events have expired")), None));
                }
                Err(error) => return Some((Err(io::Error::other(error)), None)),
            }
        }
        let text = seq.encode_next_chunk();
        Some((Ok(text.into()), Some(seq)))
    }

    /// Encodes the next chunk of the page.
    fn encode_next_chunk(&mut self) -> String {
        let prefix = match self.has_written_event {
            false => {
                format!("{{\"TYPE\":\"NonEmpty\",\"eventId\":{},\"eventSnapshots\":[", self.reader.head())
            }
            true => String::new(),
        };
        let before = self.unsent_events.len();
        let has_written_event = &mut self.has_written_event;
        let text = encode_event_chunk(&mut self.unsent_events, |event, text| {
            if std::mem::replace(has_written_event, true) {
                text.push(',');
            }
            text.push_str(&event.to_json());
        });
        let count = before - self.unsent_events.len();
        self.remaining_event_count -= count.min(self.remaining_event_count);
        self.reader.adapt_page_size(count, text.len());
        prefix + &text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_any_whole_number_but_zero() {
        assert_eq!(parse_event_limit("3"), Ok(EventLimit::Forwards(3)));
        assert_eq!(parse_event_limit("-3"), Ok(EventLimit::Backwards(3)));
        assert_eq!(parse_event_limit("99999999999999999999999"), Ok(EventLimit::Forwards(usize::MAX)));
        for bad in ["", "-", "0", "-0", "+1", "1.5", "1e3", " 1", "x", "--1"] {
            assert!(parse_event_limit(bad).is_err(), "{bad:?}");
        }
    }
}
