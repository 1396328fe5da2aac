//! `/api/v1/stream`: the journal as server-sent events, and beside it what becomes of tasks.
//!
//! Events carry their id and are never missed: a reader that comes back with `Last-Event-ID` goes on where it
//! was, or is told by `Torn` that it cannot. Task changes carry none: they are told as they happen on this
//! node, after the event they belong to, and a reader that is too slow for them misses some.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use futures::stream;
use http::{HeaderMap, Uri};
use pointsman_api::TaskChangeBody;
use pointsman_core::journal::Filter;
use pointsman_core::{Event, EventId};
use pointsman_engine::TaskChange;
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use tokio::time::{Instant, sleep_until};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::{Caller, Viewer};
use crate::events::Watch;
use crate::limits::{StreamMemory, StreamPermit};
use crate::paging::{page_bytes, piece};
use crate::problem::Problem;
use crate::sse::{self, KEEP_ALIVE};
use crate::walk::{GATHER, Step, Walk};

/// So many changes of tasks at most are told in one go.
const MOST_HEARD: usize = 1000;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// Follows the journal as server-sent events.
#[utoipa::path(
    get,
    path = "/api/v1/stream",
    operation_id = "follow_events",
    tag = "events",
    params(
        ("return" = Option<String>, Query, description = "a type or one of its ancestors; `Event` is every type"),
        ("after" = Option<u64>, Query, description = "an EventId; without it the stream begins at the newest"),
        ("path" = Option<String>, Query, description = "`/` everything, `/a/` the tree below, `/a/*` its children, `/a` that"),
        ("key" = Option<String>, Query, description = "an object"),
        ("tenant" = Option<String>, Query, description = "a tenant"),
        ("Last-Event-ID" = Option<u64>, Header, description = "goes on after this event, whatever `after` says"),
    ),
    responses((status = 200, description = "Frames: `id` the EventId, `event` the type, `data` the event; \
        `event: task` without an id for a task's change; `event: Torn` before the end if there is a gap",
        body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn stream(
    Viewer(caller): Viewer,
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let watch = Watch::of(&Watch::query(&uri, &[])?, &caller)?;
    let permit = app.streams.open(&caller)?;
    // Listening begins before anything is read, so that no change falls between the two.
    let changes = (!watch.certain_types).then(|| app.engine.changes());
    let named = last_event_id(&headers)?.or(watch.after);
    let after = match named {
        Some(after) => after,
        None => app.engine.observer().extent().await?.head,
    };
    let follower = Follower {
        walk: Walk::forwards(app.clone(), watch.filter.clone(), after),
        app,
        caller,
        page: VecDeque::new(),
        filter: watch.filter,
        changes,
        heard: Vec::new(),
        // Who named no place to begin at is told it at once: without it, one that loses its connection before
        // the first event would begin anew at a later place, and miss what lies between.
        start: named.is_none().then_some(after),
        sent: after,
        next: Instant::now(),
        alive: Instant::now() + KEEP_ALIVE,
        last: false,
        over: false,
        page_memory: StreamMemory::default(),
        _permit: permit,
    };
    Ok(sse::response(stream::unfold(follower, |mut follower| async move {
        let frames = follower.next().await?;
        Some((frames, follower))
    })))
}

/// The cursor of a reader that comes back.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    let bad = |detail: String| Problem::malformed(detail).parameter("Last-Event-ID");
    let text = value.to_str().map_err(|_| bad("this is not an EventId".into()))?;
    text.parse().map(Some).map_err(|e: pointsman_core::event_id::BadEventId| bad(e.to_string()))
}

struct Follower {
    app: App,
    caller: Caller,
    walk: Walk,
    /// Found, but not sent yet.
    page: VecDeque<Arc<Event>>,
    filter: Filter,
    changes: Option<broadcast::Receiver<TaskChange>>,
    /// Heard of, but not told yet: what was journaled before them goes first.
    heard: Vec<TaskChange>,
    /// Where the stream begins, if the reader does not know it yet.
    start: Option<EventId>,
    /// The last id that the reader has.
    sent: EventId,
    /// When the reader may hear something again, and when it must.
    next: Instant,
    alive: Instant,
    /// The server stops: what has been journaled until then is all that is still told.
    last: bool,
    over: bool,
    /// The memory of a large page until it is sent.
    page_memory: StreamMemory,
    _permit: StreamPermit,
}

/// What a follower waits for.
enum Woken {
    Grown,
    Changed(TaskChange),
    Quiet,
    /// The server stops.
    Stopping,
    /// The reader's token has been taken back.
    Revoked,
}

impl Follower {
    /// The next frames; nothing when the stream is over.
    async fn next(&mut self) -> Option<String> {
        if let Some(start) = self.start.take() {
            return Some(sse::keep_alive(Some(start.get())));
        }
        while !self.over && self.app.tokens.borrow().knows(&self.caller) {
            if !self.page.is_empty() {
                return Some(self.piece());
            }
            let frames = match self.walk.step(usize::MAX).await {
                Ok(Step::Events(events)) => self.load(events).await.then(|| self.piece()),
                Ok(Step::Nothing) => None,
                Ok(Step::End) => self.at_the_head().await,
                Ok(Step::Torn { head }) => {
                    self.over = true;
                    let data = format!("{{\"TYPE\":\"Torn\",\"eventId\":{head}}}");
                    Some(sse::frame(None, "Torn", &data))
                }
                Err(_) => return None,
            };
            if let Some(frames) = frames {
                self.told();
                return Some(frames);
            }
        }
        None
    }

    /// Takes a page to send, if there is memory for it. Otherwise the page is dropped and read again once there is; a
    /// stream for which there is none in time ends, and its reader resumes it.
    async fn load(&mut self, events: Vec<Arc<Event>>) -> bool {
        let bytes = page_bytes(&events);
        if !self.page_memory.fit(&self.app, &self.caller, bytes) {
            drop(events);
            self.walk = Walk::forwards(self.app.clone(), self.filter.clone(), self.sent);
            self.over = !self.page_memory.wait(&self.app, &self.caller, bytes).await;
            return false;
        }
        self.page = events.into();
        true
    }

    /// As much of the page as goes out at a time.
    fn piece(&mut self) -> String {
        let before = self.page.len();
        let sent = &mut self.sent;
        let text = piece(&mut self.page, |event, text| {
            text.push_str(&sse::frame(Some(event.id.get()), &event.kind, &event.to_json()));
            *sent = event.id;
        });
        self.walk.learn(before - self.page.len(), text.len());
        self.told();
        text
    }

    fn told(&mut self) {
        let now = Instant::now();
        (self.next, self.alive) = (now + GATHER, now + KEEP_ALIVE);
    }

    /// Everything journaled has been told: tells of tasks, or waits.
    async fn at_the_head(&mut self) -> Option<String> {
        self.page_memory.release();
        let heard = std::mem::take(&mut self.heard);
        let frames: String = heard.iter().filter(|change| self.wanted(change)).map(task_frame).collect();
        if !frames.is_empty() {
            return Some(frames);
        }
        match self.woken().await {
            Woken::Grown => self.go_on(),
            Woken::Changed(change) => {
                self.heard.push(change);
                self.go_on();
            }
            Woken::Quiet => {
                let reached = self.walk.reached();
                let moved = reached > self.sent;
                self.sent = self.sent.max(reached);
                return Some(sse::keep_alive(moved.then(|| reached.get())));
            }
            // What was journaled before the stop was announced is still told, the announcement among it.
            Woken::Stopping if !self.last => {
                self.last = true;
                self.go_on();
            }
            Woken::Stopping | Woken::Revoked => self.over = true,
        }
        None
    }

    /// Walks on through what has come. Changes are heard before it: where the journal never rests, they would otherwise
    /// never have their turn.
    fn go_on(&mut self) {
        self.hear();
        self.walk.go_on();
    }

    async fn woken(&mut self) -> Woken {
        let Self { app, caller, walk, changes, next, alive, .. } = self;
        let news = async {
            sleep_until(*next).await;
            tokio::select! {
                biased;
                () = walk.grown() => Woken::Grown,
                change = next_change(changes) => Woken::Changed(change),
            }
        };
        tokio::select! {
            biased;
            () = app.stopping.cancelled() => Woken::Stopping,
            () = app.revoked(caller) => Woken::Revoked,
            woken = news => woken,
            () = sleep_until(*alive) => Woken::Quiet,
        }
    }

    /// What else is known of tasks by now.
    fn hear(&mut self) {
        let Some(changes) = &mut self.changes else { return };
        while self.heard.len() < MOST_HEARD {
            match changes.try_recv() {
                Ok(change) => self.heard.push(change),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn wanted(&self, change: &TaskChange) -> bool {
        let Filter { key, tenant, path, .. } = &self.filter;
        key.as_ref().is_none_or(|key| change.key.as_ref() == Some(key))
            && tenant.as_ref().is_none_or(|tenant| change.tenant == *tenant)
            && path.matches(change.key.as_ref().map_or("", |key| key.as_str()))
    }
}

pub(crate) async fn next_change(changes: &mut Option<broadcast::Receiver<TaskChange>>) -> TaskChange {
    if let Some(receiver) = changes {
        loop {
            match receiver.recv().await {
                Ok(change) => return change,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
        *changes = None;
    }
    std::future::pending().await
}

fn task_frame(change: &TaskChange) -> String {
    let body = TaskChangeBody {
        id: change.id.to_string(),
        handler: change.handler.to_string(),
        tenant: change.tenant.to_string(),
        key: change.key.as_ref().map(ToString::to_string),
        collection: change.collection.to_string(),
        event_id: change.event.map(EventId::get),
        status: change.status.public(change.reason).into(),
        state: change.status.as_str().into(),
        attempt: change.attempt,
        error: change.error.clone(),
        delay_until: change.due.map(|due| due.to_string()).unwrap_or_default(),
        time: change.at.to_string(),
    };
    sse::frame(None, "task", &serde_json::to_string(&body).unwrap_or_default())
}
