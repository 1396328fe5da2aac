//! A task's log, whole or as it grows.

use std::io;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Uri};
use pointsman_api::{LogBody, LogList};
use pointsman_core::store::StoredLine;
use pointsman_core::{EventId, Status, TaskId};
use pointsman_engine::TaskChange;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep};

use super::one::visible;
use crate::app::App;
use crate::auth::{Caller, Viewer};
use crate::limits::{StreamMemory, StreamPermit, answer_in_pieces};
use crate::problem::Problem;
use crate::query::{Period, Query};
use crate::segment::{Segment, TaskName};
use crate::sse::{self, KEEP_ALIVE};
use crate::stream::{last_event_id, next_change};

/// How many lines are read at a time. The store gives fewer where they are long, so that one page is all that is held
/// of a log, however long it is.
const PAGE: usize = 500;
/// How often a follower looks for lines that nobody tells it of: those of a task that another node runs.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a follower rests that found nothing. Lines of other tasks wake it too, and it should not read for each of
/// them.
const REST: Duration = Duration::from_millis(100);

/// The log of a task: all of it, or with `follow=true` as server-sent events until the task ends.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}/logs",
    operation_id = "read_logs",
    tag = "tasks",
    params(
        ("id" = String, Path, description = "a task's id"),
        ("start" = Option<String>, Query, description = "lines at or after this time (RFC 3339)"),
        ("end" = Option<String>, Query, description = "lines before this time (RFC 3339)"),
        ("follow" = Option<bool>, Query, description = "send lines as they come"),
        ("Last-Event-ID" = Option<u64>, Header, description = "with `follow`, goes on after the line of this number"),
    ),
    responses((status = 200, description = "The lines", content(
        (LogList = "application/json"),
        (String = "text/event-stream"),
    ))),
)]
pub(crate) async fn logs(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::of(&uri, &["start", "end", "follow"])?;
    let follow = query.read("follow", |text| text.parse().map_err(|_| "this is `true` or `false`"))?;
    let period = query.period()?;
    // Listening begins before anything is read, so that no line falls between the two.
    let (logged, changes) = (app.engine.logged(), Some(app.engine.changes()));
    let (_, extent) = visible(&app, &caller, &id).await?;
    let reader = Reader::new(app, id, period);
    if follow != Some(true) {
        return whole(reader, &caller, Opening::Stamped(extent.head)).await;
    }
    let permit = reader.app.streams.open(&caller)?;
    let from = last_event_id(&headers)?.map_or(0, |last| last.get() + 1);
    let reader = Reader { from, ..reader };
    let alive = Instant::now() + KEEP_ALIVE;
    let follower = Follower {
        reader,
        caller,
        logged,
        changes,
        alive,
        over: false,
        memory: StreamMemory::default(),
        _permit: permit,
    };
    Ok(sse::response(stream::unfold(follower, |mut follower| async move {
        let frames = follower.next().await?;
        Some((frames, follower))
    })))
}

/// Reads a log stretch by stretch.
pub(crate) struct Reader {
    app: App,
    id: TaskId,
    /// The number of the next line.
    from: u64,
    /// Only lines of this time.
    period: Period,
}

/// A stretch of a log.
struct Stretch {
    lines: Vec<StoredLine>,
    status: Status,
    /// There was nothing to read. A page that is short says nothing: its lines may be long.
    last: bool,
}

impl Reader {
    pub(crate) fn new(app: App, id: TaskId, period: Period) -> Self {
        Self { app, id, from: 0, period }
    }

    /// The next lines that are wanted; `None` if the task is no longer remembered.
    async fn next(&mut self) -> io::Result<Option<Stretch>> {
        let page = self.app.store().logs(&self.id, self.from, PAGE).await.map_err(io::Error::other)?;
        let Some(page) = page else { return Ok(None) };
        let last = page.lines.last().map(|line| line.number);
        self.from = last.map_or(self.from, |number| number + 1);
        let Period { start, end } = self.period;
        let wanted = |line: &StoredLine| {
            start.is_none_or(|start| line.line.time >= start) && end.is_none_or(|end| line.line.time < end)
        };
        let lines = page.lines.into_iter().filter(wanted).collect();
        Ok(Some(Stretch { lines, status: page.status, last: last.is_none() }))
    }
}

fn text(line: &StoredLine) -> String {
    serde_json::to_string(&LogBody::from(&line.line)).unwrap_or_default()
}

/// How the whole log begins.
#[derive(Clone, Copy)]
pub(crate) enum Opening {
    /// With the newest event id when it was read.
    Stamped(EventId),
    /// With nothing but the lines.
    Plain,
}

/// A whole log as an answer, streamed.
pub(crate) async fn whole(reader: Reader, caller: &Caller, opening: Opening) -> Result<Response, Problem> {
    let budget = reader.app.responses.clone();
    let opening = match opening {
        Opening::Stamped(head) => format!("{{\"eventId\":{head},\"logs\":["),
        Opening::Plain => "{\"logs\":[".to_owned(),
    };
    answer_in_pieces(&budget, caller, stream::unfold(Some((reader, opening, false)), piece)).await
}

/// What is still to be told: by whom, what stands before it, and whether a line has been written.
type Rest = Option<(Reader, String, bool)>;

/// The next piece of the whole log.
async fn piece(rest: Rest) -> Option<(io::Result<Bytes>, Rest)> {
    let (mut reader, opening, begun) = rest?;
    let stretch = match reader.next().await {
        Ok(stretch) => stretch,
        Err(error) => return Some((Err(error), None)),
    };
    let Some(stretch) = stretch.filter(|stretch| !stretch.last) else {
        return Some((Ok(format!("{opening}]}}").into()), None));
    };
    let (mut written, mut begun) = (opening, begun);
    for line in stretch.lines {
        if begun {
            written.push(',');
        }
        begun = true;
        written.push_str(&text(&line));
    }
    Some((Ok(written.into()), Some((reader, String::new(), begun))))
}

struct Follower {
    reader: Reader,
    caller: Caller,
    /// Changes when this node has stored log lines, of whichever task.
    logged: watch::Receiver<u64>,
    /// What becomes of tasks: the end of this one is told even if its last attempt wrote nothing.
    changes: Option<broadcast::Receiver<TaskChange>>,
    alive: Instant,
    over: bool,
    /// The memory of the lines that are being sent.
    memory: StreamMemory,
    _permit: StreamPermit,
}

impl Follower {
    async fn next(&mut self) -> Option<String> {
        while !self.over && self.reader.app.tokens.borrow().knows(&self.caller) {
            self.logged.mark_unchanged();
            let from = self.reader.from;
            let stretch = self.reader.next().await.ok()??;
            let frames: String =
                stretch.lines.iter().map(|line| sse::frame(Some(line.number), "log", &text(line))).collect();
            let ended = matches!(stretch.status, Status::Done | Status::Error | Status::Missing);
            if !self.memory.fit(&self.reader.app, &self.caller, frames.len()) {
                self.reader.from = from;
                let bytes = frames.len();
                drop((frames, stretch));
                self.over = !self.memory.wait(&self.reader.app, &self.caller, bytes).await;
                continue;
            }
            if !frames.is_empty() {
                self.alive = Instant::now() + KEEP_ALIVE;
                return Some(frames);
            }
            if stretch.last && ended {
                self.over = true;
                let data = format!("{{\"state\":\"{}\"}}", stretch.status.as_str());
                return Some(sse::frame(None, "end", &data));
            }
            if stretch.last {
                if self.alive <= Instant::now() {
                    self.alive = Instant::now() + KEEP_ALIVE;
                    return Some(sse::keep_alive(None));
                }
                self.memory.release();
                self.wait().await;
            }
        }
        None
    }

    /// Waits until there may be more to tell, after nothing was found. That the task has ended is told at once.
    async fn wait(&mut self) {
        let Self { reader, caller, logged, changes, over, .. } = self;
        let more = async {
            sleep(REST).await;
            // The engine has the sender, and outlives all who follow.
            let _ = logged.changed().await;
        };
        let of_this = async { while next_change(changes).await.id != reader.id {} };
        tokio::select! {
            () = reader.app.stopping.cancelled() => *over = true,
            () = reader.app.revoked(caller) => *over = true,
            () = more => {}
            () = of_this => {}
            () = sleep(LOOK_AGAIN) => {}
        }
    }
}
