//! `/api/v1/stream`: the journal as server-sent events, together with task changes.
//!
//! Events have an id and are never missed: a client that reconnects with `Last-Event-ID` continues after it, or gets
//! `Torn` if events after it have expired. Task changes have no id: they are sent as they happen on this node, after
//! the event they belong to, and a slow client misses some.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use futures::stream;
use http::{HeaderMap, Uri};
use pointsman_api::TaskChangeBody;
use pointsman_core::journal::EventFilter;
use pointsman_core::{Event, EventId};
use pointsman_engine::TaskChange;
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use tokio::time::{Instant, sleep_until};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::{Caller, Viewer};
use crate::events::EventQuery;
use crate::journal_paging::{encode_event_chunk, page_memory_bytes};
use crate::journal_reader::{BATCH_DELAY, JournalReader, PageReadOutcome};
use crate::limits::{StreamMemory, StreamPermit};
use crate::problem::Problem;
use crate::sse::{self, KEEP_ALIVE_INTERVAL};

/// Maximum number of task changes that are sent together.
const MAX_PENDING_TASK_CHANGES: usize = 1000;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(follow_events))
}

/// Follows the journal as server-sent events.
#[utoipa::path(
    get,
    path = "/api/v1/stream",
    operation_id = "follow_events",
    tag = "events",
    params(
        ("return" = Option<String>, Query, description = "a type or one of its ancestors; `Event` is every type"),
        ("after" = Option<u64>, Query, description = "an EventId; without it the stream begins at the newest event"),
        ("path" = Option<String>, Query, description = "`/` everything, `/a/` the tree below, `/a/*` its direct children, `/a` exactly that key"),
        ("key" = Option<String>, Query, description = "key of an object"),
        ("tenant" = Option<String>, Query, description = "only this tenant's events"),
        ("Last-Event-ID" = Option<u64>, Header, description = "resumes after this event; takes precedence over `after`"),
    ),
    responses((status = 200, description = "Frames: `id` the EventId, `event` the type, `data` the event; \
        `event: task` without an id for a task change; `event: Torn` before the end of the stream if there is a gap",
        body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn follow_events(
    Viewer(caller): Viewer,
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let event_query = EventQuery::from_query(&EventQuery::query_from_uri(&uri, &[])?, &caller)?;
    let permit = app.stream_limiter.try_acquire_permit(&caller)?;
    // Subscribe before reading, so that no change is missed between the two.
    let task_changes = (!event_query.has_type_filter).then(|| app.engine.subscribe_task_changes());
    let given_cursor = read_last_event_id(&headers)?.or(event_query.after);
    let after = match given_cursor {
        Some(after) => after,
        None => app.engine.observer().read_journal_range().await?.newest_event_id,
    };
    let follower = JournalFollower {
        reader: JournalReader::new_forwards(app.clone(), event_query.filter.clone(), after),
        app,
        caller,
        unsent_events: VecDeque::new(),
        filter: event_query.filter,
        task_changes,
        pending_task_changes: Vec::new(),
        // A client without a cursor gets one at once. Otherwise, if its connection broke before the first event, it
        // would reconnect at a later position and miss the events between.
        initial_cursor: given_cursor.is_none().then_some(after),
        sent_cursor: after,
        next_send_at: Instant::now(),
        keep_alive_at: Instant::now() + KEEP_ALIVE_INTERVAL,
        is_draining: false,
        is_finished: false,
        page_memory: StreamMemory::default(),
        _stream_permit: permit,
    };
    Ok(sse::stream_response(stream::unfold(follower, |mut follower| async move {
        let frames = follower.next_frames().await?;
        Some((frames, follower))
    })))
}

/// Reads the cursor of a client that reconnects.
pub(crate) fn read_last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    let bad = |detail: String| Problem::malformed(detail).with_parameter("Last-Event-ID");
    let text = value.to_str().map_err(|_| bad("`Last-Event-ID` is not an EventId".into()))?;
    text.parse().map(Some).map_err(|e: pointsman_core::event_id::BadEventId| bad(e.to_string()))
}

/// A stream that sends the journal from a cursor on, and task changes, as server-sent events.
struct JournalFollower {
    app: App,
    caller: Caller,
    reader: JournalReader,
    /// Events that were read and not sent yet.
    unsent_events: VecDeque<Arc<Event>>,
    filter: EventFilter,
    task_changes: Option<broadcast::Receiver<TaskChange>>,
    /// Task changes that were received and not sent yet. Events journaled before them are sent first.
    pending_task_changes: Vec<TaskChange>,
    /// The cursor at which the stream begins, if the client does not have it yet.
    initial_cursor: Option<EventId>,
    /// The last id that was sent.
    sent_cursor: EventId,
    /// The earliest time of the next message.
    next_send_at: Instant,
    /// The time of the next keep-alive message, if nothing is sent before.
    keep_alive_at: Instant,
    /// Whether the server is stopping. Events journaled until then are still sent.
    is_draining: bool,
    is_finished: bool,
    /// The response memory that a large page has reserved until it is sent.
    page_memory: StreamMemory,
    _stream_permit: StreamPermit,
}

/// The reason why a waiting follower continues.
enum WakeReason {
    NewEvents,
    TaskChanged(TaskChange),
    KeepAliveDue,
    /// The server stops.
    Stopping,
    /// The client's token is no longer accepted.
    TokenRevoked,
}

impl JournalFollower {
    /// The next frames, once there are any; `None` when the stream has ended.
    async fn next_frames(&mut self) -> Option<String> {
        if let Some(start) = self.initial_cursor.take() {
            return Some(sse::format_keep_alive(Some(start.get())));
        }
        while !self.is_finished && self.app.accepted_tokens.borrow().is_token_still_accepted(&self.caller) {
            if !self.unsent_events.is_empty() {
                return Some(self.encode_next_chunk());
            }
            let frames = match self.reader.read_page(usize::MAX).await {
                Ok(PageReadOutcome::Events(events)) => {
                    self.accept_page_if_memory_allows(events).await.then(|| self.encode_next_chunk())
                }
                Ok(PageReadOutcome::NoMatchInPage) => None,
                Ok(PageReadOutcome::End) => self.next_task_frames_or_wait().await,
                Ok(PageReadOutcome::GapAfterCursor { head }) => {
                    self.is_finished = true;
                    let data = format!("{{\"TYPE\":\"Torn\",\"eventId\":{head}}}");
                    Some(sse::format_frame(None, "Torn", &data))
                }
                Err(_) => return None,
            };
            if let Some(frames) = frames {
                self.reset_timers();
                return Some(frames);
            }
        }
        None
    }

    /// Takes a page to send, if there is memory for it. Otherwise drops the page, waits for memory and reads it again;
    /// if there is no memory in time, the stream ends and the client resumes it.
    async fn accept_page_if_memory_allows(&mut self, events: Vec<Arc<Event>>) -> bool {
        let bytes = page_memory_bytes(&events);
        if !self.page_memory.reserve_for_page(&self.app, &self.caller, bytes) {
            drop(events);
            self.reader =
                JournalReader::new_forwards(self.app.clone(), self.filter.clone(), self.sent_cursor);
            self.is_finished = !self.page_memory.wait_for_memory(&self.app, &self.caller, bytes).await;
            return false;
        }
        self.unsent_events = events.into();
        true
    }

    /// Encodes the next chunk of the page.
    fn encode_next_chunk(&mut self) -> String {
        let before = self.unsent_events.len();
        let sent_cursor = &mut self.sent_cursor;
        let text = encode_event_chunk(&mut self.unsent_events, |event, text| {
            text.push_str(&sse::format_frame(Some(event.id.get()), &event.event_type, &event.to_json()));
            *sent_cursor = event.id;
        });
        self.reader.adapt_page_size(before - self.unsent_events.len(), text.len());
        self.reset_timers();
        text
    }

    fn reset_timers(&mut self) {
        let now = Instant::now();
        (self.next_send_at, self.keep_alive_at) = (now + BATCH_DELAY, now + KEEP_ALIVE_INTERVAL);
    }

    /// Continues when all events have been sent: returns the frames of pending task changes, or waits for new events
    /// and changes.
    async fn next_task_frames_or_wait(&mut self) -> Option<String> {
        self.page_memory.release();
        let pending_task_changes = std::mem::take(&mut self.pending_task_changes);
        let frames: String = pending_task_changes
            .iter()
            .filter(|change| self.task_change_matches(change))
            .map(format_task_frame)
            .collect();
        if !frames.is_empty() {
            return Some(frames);
        }
        match self.wait_for_wake().await {
            WakeReason::NewEvents => self.resume_reading(),
            WakeReason::TaskChanged(change) => {
                self.pending_task_changes.push(change);
                self.resume_reading();
            }
            WakeReason::KeepAliveDue => {
                let reached = self.reader.resume_cursor();
                let moved = reached > self.sent_cursor;
                self.sent_cursor = self.sent_cursor.max(reached);
                return Some(sse::format_keep_alive(moved.then(|| reached.get())));
            }
            // Events up to the announcement of the stop are still sent, including the announcement.
            WakeReason::Stopping if !self.is_draining => {
                self.is_draining = true;
                self.resume_reading();
            }
            WakeReason::Stopping | WakeReason::TokenRevoked => self.is_finished = true,
        }
        None
    }

    /// Continues with new events. Task changes are collected first; otherwise a journal that grows all the time would
    /// keep them from ever being sent.
    fn resume_reading(&mut self) {
        self.collect_task_changes();
        self.reader.start_next_read();
    }

    async fn wait_for_wake(&mut self) -> WakeReason {
        let Self { app, caller, reader, task_changes, next_send_at, keep_alive_at, .. } = self;
        let next_change = async {
            sleep_until(*next_send_at).await;
            tokio::select! {
                biased;
                () = reader.wait_for_match() => WakeReason::NewEvents,
                change = receive_task_change(task_changes) => WakeReason::TaskChanged(change),
            }
        };
        tokio::select! {
            biased;
            () = app.stop_signal.cancelled() => WakeReason::Stopping,
            () = app.wait_until_token_revoked(caller) => WakeReason::TokenRevoked,
            reason = next_change => reason,
            () = sleep_until(*keep_alive_at) => WakeReason::KeepAliveDue,
        }
    }

    /// Collects the task changes that have arrived.
    fn collect_task_changes(&mut self) {
        let Some(task_changes) = &mut self.task_changes else { return };
        while self.pending_task_changes.len() < MAX_PENDING_TASK_CHANGES {
            match task_changes.try_recv() {
                Ok(change) => self.pending_task_changes.push(change),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn task_change_matches(&self, change: &TaskChange) -> bool {
        let EventFilter { key, tenant, path, .. } = &self.filter;
        key.as_ref().is_none_or(|key| change.key.as_ref() == Some(key))
            && tenant.as_ref().is_none_or(|tenant| change.tenant == *tenant)
            && path.matches(change.key.as_ref().map_or("", |key| key.as_str()))
    }
}

pub(crate) async fn receive_task_change(
    task_changes: &mut Option<broadcast::Receiver<TaskChange>>,
) -> TaskChange {
    if let Some(receiver) = task_changes {
        loop {
            match receiver.recv().await {
                Ok(change) => return change,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
        *task_changes = None;
    }
    std::future::pending().await
}

fn format_task_frame(change: &TaskChange) -> String {
    let body = TaskChangeBody {
        id: change.id.to_string(),
        handler: change.handler.to_string(),
        tenant: change.tenant.to_string(),
        key: change.key.as_ref().map(ToString::to_string),
        subject_name: change.subject_name.to_string(),
        event_id: change.event_id.map(EventId::get),
        status: change.status.public_name(change.error_reason).into(),
        state: change.status.as_str().into(),
        attempt: change.attempt,
        error: change.error.clone(),
        delay_until: change.due_at.map(|due| due.to_string()).unwrap_or_default(),
        time: change.changed_at.to_string(),
    };
    sse::format_frame(None, "task", &serde_json::to_string(&body).unwrap_or_default())
}
