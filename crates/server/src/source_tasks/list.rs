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

use crate::app_state::App;
use crate::auth::Viewer;
use crate::handler_lookup;
use crate::limits::stream_json_chunks;
use crate::problem::Problem;
use crate::request_query::{Period, RequestQuery};
use crate::tasks::StatusFilter;

/// Number of tasks per page.
const TASKS_PER_PAGE: usize = 200;

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
    let query = RequestQuery::from_uri(&uri, &["source", "start", "end", "status", "collection"])?;
    let source: HandlerName = query.require_parameter("source", query.parse_parameter("source")?)?;
    let Period { start, end } = query.parse_period()?;
    let (start, end) = (query.require_parameter("start", start)?, query.require_parameter("end", end)?);
    let StatusFilter { statuses, error_reasons } =
        query.parse_parameter_with("status", parse_public_status)?.unwrap_or_default();
    handler_lookup::check_handler_exists_or_has_tasks(&app, &caller, &source, "source")
        .await
        .map_err(|problem| problem.with_parameter("source"))?;
    let filter = TaskFilter {
        statuses,
        error_reasons,
        handler: Some(source),
        subject_name: query.get("collection").map(Into::into),
        tenant: caller.bound_tenant.clone(),
        created_from: Some(start),
        created_before: Some(end),
        ..TaskFilter::default()
    };
    let page = app.store().list_tasks(filter.clone(), None, TASKS_PER_PAGE).await?;
    let budget = app.response_memory_budget.clone();
    let remaining =
        RemainingTasks { app, filter, page, json_prefix: "{\"tasks\":[", has_written_task: false };
    stream_json_chunks(&budget, &caller, stream::unfold(Some(remaining), encode_page_and_read_next)).await
}

fn parse_public_status(text: &str) -> Result<StatusFilter, String> {
    StatusFilter::from_public_status(text).ok_or_else(|| {
        format!("{text:?} is not a status; there are SCHEDULED, RUNNING, SUCCESS, FAILED and CANCELED")
    })
}

/// The tasks that are still to be sent.
struct RemainingTasks {
    app: App,
    filter: TaskFilter,
    page: TaskPage,
    /// The JSON before the first task, until it is written.
    json_prefix: &'static str,
    has_written_task: bool,
}

/// Encodes a page and reads the next one.
async fn encode_page_and_read_next(
    remaining: Option<RemainingTasks>,
) -> Option<(io::Result<Bytes>, Option<RemainingTasks>)> {
    let mut remaining = remaining?;
    let mut text = std::mem::take(&mut remaining.json_prefix).to_owned();
    for task in remaining.page.tasks.drain(..) {
        if remaining.has_written_task {
            text.push(',');
        }
        remaining.has_written_task = true;
        text.push_str(&serde_json::to_string(&TaskBody::from(&task)).unwrap_or_default());
    }
    let Some(before) = remaining.page.next_cursor else {
        text.push_str("]}");
        return Some((Ok(text.into()), None));
    };
    match remaining.app.store().list_tasks(remaining.filter.clone(), Some(before), TASKS_PER_PAGE).await {
        Ok(page) => Some((Ok(text.into()), Some(RemainingTasks { page, ..remaining }))),
        Err(error) => Some((Err(io::Error::other(error)), None)),
    }
}
