//! The log of a task, whole or followed while it grows.

use std::io;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Uri};
use pointsman_api::{LogLineBody, LogList};
use pointsman_core::store::StoredLogLine;
use pointsman_core::{EventId, TaskId, TaskStatus};
use pointsman_engine::TaskChange;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep};

use super::single_task::find_visible_task;
use crate::app_state::App;
use crate::auth::{Caller, Viewer};
use crate::event_stream::{read_last_event_id, receive_task_change};
use crate::limits::{StreamMemory, StreamPermit, stream_json_chunks};
use crate::path_segment::{PathSegment, TaskIdSegment};
use crate::problem::Problem;
use crate::request_query::{Period, RequestQuery};
use crate::sse::{self, KEEP_ALIVE_INTERVAL};

/// Maximum lines per page. The store returns fewer if they are long, so that one page bounds the memory for a log.
const MAX_LINES_PER_PAGE: usize = 500;
/// Interval at which a follower reads the log although it got no notification: lines of tasks that run on other nodes
/// notify nobody here.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum pause of a follower that found no new line. Lines of other tasks notify the follower too, and it should not
/// read the log for each of them.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(100);

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
        ("follow" = Option<bool>, Query, description = "send lines as they are logged"),
        ("Last-Event-ID" = Option<u64>, Header, description = "with `follow`, resumes after the line with this number"),
    ),
    responses((status = 200, description = "The lines", content(
        (LogList = "application/json"),
        (String = "text/event-stream"),
    ))),
)]
pub(crate) async fn read_logs(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = RequestQuery::from_uri(&uri, &["start", "end", "follow"])?;
    let follow = query
        .parse_parameter_with("follow", |text| text.parse().map_err(|_| "`follow` is `true` or `false`"))?;
    let period = query.parse_period()?;
    // Subscribe before reading, so that no line is missed between the two.
    let (log_notifications, task_changes) =
        (app.engine.subscribe_log_writes(), Some(app.engine.subscribe_task_changes()));
    let (_, journal_range) = find_visible_task(&app, &caller, &id).await?;
    let reader = LogReader::new(app, id, period);
    if follow != Some(true) {
        return stream_whole_log(reader, &caller, LogJsonPrefix::WithEventId(journal_range.newest_event_id))
            .await;
    }
    let permit = reader.app.stream_limiter.try_acquire_permit(&caller)?;
    let next_line = read_last_event_id(&headers)?.map_or(0, |last| last.get() + 1);
    let reader = LogReader { next_line_number: next_line, ..reader };
    let keep_alive_at = Instant::now() + KEEP_ALIVE_INTERVAL;
    let follower = LogFollower {
        reader,
        caller,
        log_write_notifications: log_notifications,
        task_changes,
        keep_alive_at,
        is_finished: false,
        page_memory: StreamMemory::default(),
        _stream_permit: permit,
    };
    Ok(sse::stream_response(stream::unfold(follower, |mut follower| async move {
        let frames = follower.next_frames().await?;
        Some((frames, follower))
    })))
}

/// Reads a log page by page.
pub(crate) struct LogReader {
    app: App,
    task_id: TaskId,
    /// The number of the next line.
    next_line_number: u64,
    /// Only lines of this period are returned.
    period: Period,
}

/// A page of a log.
struct LogPage {
    lines: Vec<StoredLogLine>,
    task_status: TaskStatus,
    /// Whether the store returned no line, not even one outside the period. A short page is not the end: its lines may
    /// be long.
    store_returned_no_line: bool,
}

impl LogReader {
    pub(crate) fn new(app: App, task_id: TaskId, period: Period) -> Self {
        Self { app, task_id, next_line_number: 0, period }
    }

    /// Reads the next lines of the period; `None` if the task is no longer retained.
    async fn read_next_page(&mut self) -> io::Result<Option<LogPage>> {
        let page = self
            .app
            .store()
            .read_logs(&self.task_id, self.next_line_number, MAX_LINES_PER_PAGE)
            .await
            .map_err(io::Error::other)?;
        let Some(page) = page else { return Ok(None) };
        let last = page.lines.last().map(|line| line.number);
        self.next_line_number = last.map_or(self.next_line_number, |number| number + 1);
        let Period { start, end } = self.period;
        let in_period = |line: &StoredLogLine| {
            start.is_none_or(|start| line.line.time >= start) && end.is_none_or(|end| line.line.time < end)
        };
        let lines = page.lines.into_iter().filter(in_period).collect();
        Ok(Some(LogPage { lines, task_status: page.task_status, store_returned_no_line: last.is_none() }))
    }
}

fn encode_log_line(line: &StoredLogLine) -> String {
    serde_json::to_string(&LogLineBody::from(&line.line)).unwrap_or_default()
}

/// The members before the lines in the JSON of a whole log.
#[derive(Clone, Copy)]
pub(crate) enum LogJsonPrefix {
    /// The newest event id when the log was read.
    WithEventId(EventId),
    /// No members.
    LinesOnly,
}

/// Streams a whole log as a response.
pub(crate) async fn stream_whole_log(
    reader: LogReader,
    caller: &Caller,
    prefix: LogJsonPrefix,
) -> Result<Response, Problem> {
    let budget = reader.app.response_memory_budget.clone();
    let prefix = match prefix {
        LogJsonPrefix::WithEventId(head) => format!("{{\"eventId\":{head},\"logs\":["),
        LogJsonPrefix::LinesOnly => "{\"logs\":[".to_owned(),
    };
    stream_json_chunks(&budget, caller, stream::unfold(Some((reader, prefix, false)), encode_next_log_chunk))
        .await
}

/// The rest of a log: its reader, the JSON before the next line, and whether a line has been written.
type RemainingLog = Option<(LogReader, String, bool)>;

/// Encodes the next chunk of a whole log.
async fn encode_next_log_chunk(remaining: RemainingLog) -> Option<(io::Result<Bytes>, RemainingLog)> {
    let (mut reader, prefix, has_lines) = remaining?;
    let page = match reader.read_next_page().await {
        Ok(page) => page,
        Err(error) => return Some((Err(error), None)),
    };
    let Some(page) = page.filter(|page| !page.store_returned_no_line) else {
        return Some((Ok(format!("{prefix}]}}").into()), None));
    };
    let (mut written, mut has_lines) = (prefix, has_lines);
    for line in page.lines {
        if has_lines {
            written.push(',');
        }
        has_lines = true;
        written.push_str(&encode_log_line(&line));
    }
    Some((Ok(written.into()), Some((reader, String::new(), has_lines))))
}

/// A stream that sends the log of a task as server-sent events until the task ends.
struct LogFollower {
    reader: LogReader,
    caller: Caller,
    /// Changes when this node has stored log lines of any task.
    log_write_notifications: watch::Receiver<u64>,
    /// Task changes, so that the end of this task is noticed even if its last attempt logged nothing.
    task_changes: Option<broadcast::Receiver<TaskChange>>,
    keep_alive_at: Instant,
    is_finished: bool,
    /// The memory reserved for the lines being sent.
    page_memory: StreamMemory,
    _stream_permit: StreamPermit,
}

impl LogFollower {
    async fn next_frames(&mut self) -> Option<String> {
        while !self.is_finished
            && self.reader.app.accepted_tokens.borrow().is_token_still_accepted(&self.caller)
        {
            self.log_write_notifications.mark_unchanged();
            let next_line = self.reader.next_line_number;
            let page = self.reader.read_next_page().await.ok()??;
            let frames: String = page
                .lines
                .iter()
                .map(|line| sse::format_frame(Some(line.number), "log", &encode_log_line(line)))
                .collect();
            let has_task_ended =
                matches!(page.task_status, TaskStatus::Done | TaskStatus::Error | TaskStatus::Missing);
            if !self.page_memory.reserve_for_page(&self.reader.app, &self.caller, frames.len()) {
                self.reader.next_line_number = next_line;
                let bytes = frames.len();
                drop((frames, page));
                self.is_finished =
                    !self.page_memory.wait_for_memory(&self.reader.app, &self.caller, bytes).await;
                continue;
            }
            if !frames.is_empty() {
                self.keep_alive_at = Instant::now() + KEEP_ALIVE_INTERVAL;
                return Some(frames);
            }
            if page.store_returned_no_line && has_task_ended {
                self.is_finished = true;
                let data = format!("{{\"state\":\"{}\"}}", page.task_status.as_str());
                return Some(sse::format_frame(None, "end", &data));
            }
            if page.store_returned_no_line {
                if self.keep_alive_at <= Instant::now() {
                    self.keep_alive_at = Instant::now() + KEEP_ALIVE_INTERVAL;
                    return Some(sse::format_keep_alive(None));
                }
                self.page_memory.release();
                self.wait_for_lines().await;
            }
        }
        None
    }

    /// Waits until there may be more lines. Returns at once when the task changes.
    async fn wait_for_lines(&mut self) {
        let Self {
            reader,
            caller,
            log_write_notifications: log_notifications,
            task_changes,
            is_finished,
            ..
        } = self;
        let more_logged = async {
            sleep(MIN_READ_INTERVAL).await;
            // The engine owns the sender and outlives all followers.
            let _ = log_notifications.changed().await;
        };
        let this_task_changed =
            async { while receive_task_change(task_changes).await.id != reader.task_id {} };
        tokio::select! {
            () = reader.app.stop_signal.cancelled() => *is_finished = true,
            () = reader.app.wait_until_token_revoked(caller) => *is_finished = true,
            () = more_logged => {}
            () = this_task_changed => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}
