//! A task's log, whole or as it grows.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Uri, header};
use pointsman_api::{LogBody, LogList};
use pointsman_core::store::StoredLine;
use pointsman_core::{Status, TaskId, Timestamp};
use tokio::time::{Instant, sleep};

use super::one::find;
use crate::app::App;
use crate::auth::{Caller, Viewer};
use crate::problem::Problem;
use crate::query::Query;
use crate::segment::{Segment, TaskName};
use crate::sse::{self, KEEP_ALIVE};
use crate::stream::last_event_id;

/// How many lines are read at a time.
const PAGE: usize = 500;
/// How often a follower looks for new lines. Lines reach the store in batches and make no signal of their own.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

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
    let mut reader = Reader {
        app: app.clone(),
        id: id.clone(),
        head: 0,
        from: 0,
        start: query.parse("start")?,
        end: query.parse("end")?,
    };
    reader.head = find(&app, &caller, &id).await?.snapshot;
    if follow != Some(true) {
        let text = stream::unfold(Some((reader, false)), whole);
        return Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(text)).into_response());
    }
    reader.from = last_event_id(&headers)?.map_or(0, |last| last.get() + 1);
    let follower = Follower { reader, caller, alive: Instant::now() + KEEP_ALIVE, over: false };
    Ok(sse::response(stream::unfold(follower, |mut follower| async move {
        let frames = follower.next().await?;
        Some((frames, follower))
    })))
}

struct Reader {
    app: App,
    id: TaskId,
    /// The newest event when the reading began.
    head: u64,
    /// The number of the next line.
    from: u64,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

/// A stretch of a log.
struct Stretch {
    lines: Vec<StoredLine>,
    status: Status,
    /// There was nothing beyond it.
    last: bool,
}

impl Reader {
    /// The next lines that are wanted; `None` if the task is no longer remembered.
    async fn next(&mut self) -> io::Result<Option<Stretch>> {
        let page = self.app.store().logs(&self.id, self.from, PAGE).await.map_err(io::Error::other)?;
        let Some(page) = page else { return Ok(None) };
        let last = page.lines.last().map(|line| line.number);
        self.from = last.map_or(self.from, |number| number + 1);
        let (start, end) = (self.start, self.end);
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

/// The next piece of the whole log; `begun` tells whether a line has been written.
async fn whole(state: Option<(Reader, bool)>) -> Option<(io::Result<Bytes>, Option<(Reader, bool)>)> {
    let (mut reader, begun) = state?;
    let opening = match reader.from {
        0 => format!("{{\"eventId\":{},\"logs\":[", reader.head),
        _ => String::new(),
    };
    let stretch = match reader.next().await {
        Ok(stretch) => stretch,
        Err(error) => return Some((Err(error), None)),
    };
    let Some(stretch) = stretch.filter(|stretch| !stretch.last) else {
        return Some((Ok(format!("{opening}]}}").into()), None));
    };
    let lines: Vec<String> = stretch.lines.iter().map(text).collect();
    let comma = if begun && !lines.is_empty() { "," } else { "" };
    let begun = begun || !lines.is_empty();
    Some((Ok(format!("{opening}{comma}{}", lines.join(",")).into()), Some((reader, begun))))
}

struct Follower {
    reader: Reader,
    caller: Caller,
    alive: Instant,
    over: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<String> {
        while !self.over && self.reader.app.tokens.borrow().knows(&self.caller) {
            let stretch = self.reader.next().await.ok()??;
            let frames: String =
                stretch.lines.iter().map(|line| sse::frame(Some(line.number), "log", &text(line))).collect();
            let ended = matches!(stretch.status, Status::Done | Status::Error | Status::Missing);
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
                tokio::select! {
                    () = self.reader.app.stopping.cancelled() => self.over = true,
                    () = self.reader.app.revoked(&self.caller) => self.over = true,
                    () = sleep(LOOK_AGAIN) => {}
                }
            }
        }
        None
    }
}
