//! All tasks of a source, streamed page by page. A complete response has all that match; if the store fails midway, the
//! connection is aborted.

use std::io;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::Uri;
use pointsman_api::{SourceTaskList, TaskBody};
use pointsman_core::HandlerName;
use pointsman_core::store::{TaskFilter, TaskPage};

use crate::app::App;
use crate::auth::Viewer;
use crate::handler_lookup;
use crate::limits::stream_json_pieces;
use crate::problem::Problem;
use crate::query::{Period, Query};
use crate::tasks::StatusFilter;

/// Number of tasks per page.
const PAGE_TASKS: usize = 200;

/// The tasks of a source that were created in a period, newest first, without pages.
#[utoipa::path(
    get,
    path = "/tasks",
    operation_id = "list_source_tasks",
    tag = "sources",
    params(
        ("source" = String, Query, description = "a source's or a handler's name"),
        ("start" = String, Query, description = "created at or after this time (RFC 3339)"),
        ("end" = String, Query, description = "created before this time (RFC 3339)"),
        ("status" = Option<String>, Query, description = "SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED"),
        ("collection" = Option<String>, Query, description = "a collection, or an event's type"),
    ),
    responses((status = 200, description = "The tasks", body = SourceTaskList)),
)]
pub(crate) async fn list_source_tasks(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::from_uri(&uri, &["source", "start", "end", "status", "collection"])?;
    let source: HandlerName = query.require("source", query.parse("source")?)?;
    let Period { start, end } = query.parse_period()?;
    let (start, end) = (query.require("start", start)?, query.require("end", end)?);
    let StatusFilter { statuses, reasons } = query.parse_with("status", parse_status)?.unwrap_or_default();
    handler_lookup::require_handler(&app, &caller, &source, "source")
        .await
        .map_err(|problem| problem.parameter("source"))?;
    let filter = TaskFilter {
        statuses,
        error_reasons: reasons,
        handler: Some(source),
        collection: query.get("collection").map(Into::into),
        tenant: caller.tenant.clone(),
        created_from: Some(start),
        created_before: Some(end),
        ..TaskFilter::default()
    };
    let page = app.store().list_tasks(filter.clone(), None, PAGE_TASKS).await?;
    let budget = app.responses.clone();
    let remaining = RemainingTasks { app, filter, page, prefix: "{\"tasks\":[", has_tasks: false };
    stream_json_pieces(&budget, &caller, stream::unfold(Some(remaining), next_chunk)).await
}

fn parse_status(text: &str) -> Result<StatusFilter, String> {
    StatusFilter::from_public_status(text).ok_or_else(|| {
        format!("{text:?} is not a status; there are SCHEDULED, RUNNING, SUCCESS, FAILED and CANCELED")
    })
}

/// The tasks that are still to be sent.
struct RemainingTasks {
    app: App,
    filter: TaskFilter,
    page: TaskPage,
    /// Written before the first task.
    prefix: &'static str,
    has_tasks: bool,
}

/// Encodes a page and reads the next one.
async fn next_chunk(
    remaining: Option<RemainingTasks>,
) -> Option<(io::Result<Bytes>, Option<RemainingTasks>)> {
    let mut remaining = remaining?;
    let mut text = std::mem::take(&mut remaining.prefix).to_owned();
    for task in remaining.page.tasks.drain(..) {
        if remaining.has_tasks {
            text.push(',');
        }
        remaining.has_tasks = true;
        text.push_str(&serde_json::to_string(&TaskBody::from(&task)).unwrap_or_default());
    }
    let Some(before) = remaining.page.next else {
        text.push_str("]}");
        return Some((Ok(text.into()), None));
    };
    match remaining.app.store().list_tasks(remaining.filter.clone(), Some(before), PAGE_TASKS).await {
        Ok(page) => Some((Ok(text.into()), Some(RemainingTasks { page, ..remaining }))),
        Err(error) => Some((Err(io::Error::other(error)), None)),
    }
}
