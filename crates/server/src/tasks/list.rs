//! `GET /api/v1/tasks`: lists tasks by filter, a page at a time.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{TaskBody, TaskList};
use pointsman_core::store::TaskFilter;
use pointsman_core::task::ErrorReason;
use pointsman_core::{HandlerName, TaskSeq, TaskStatus};

use crate::app_state::App;
use crate::auth::Viewer;
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// Default number of tasks in a response.
const DEFAULT_LIMIT: usize = 100;
/// Maximum number of tasks in a response.
const MAX_LIMIT: usize = 1000;
/// Maximum number of store pages read for one response.
const MAX_STORE_PAGES: usize = 16;

const QUERY_PARAMETERS: [&str; 11] = [
    "status",
    "handler",
    "source",
    "collection",
    "tenant",
    "key",
    "event",
    "start",
    "end",
    "limit",
    "cursor",
];

/// Tasks, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/tasks",
    operation_id = "list_tasks",
    tag = "tasks",
    params(
        ("status" = Option<String>, Query, description = "SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED; \
            or new, scheduled, locked, done, error or missing"),
        ("handler" = Option<String>, Query, description = "a handler's or a source's name"),
        ("source" = Option<String>, Query, description = "the same as `handler`"),
        ("collection" = Option<String>, Query, description = "an event's type or a source's collection"),
        ("tenant" = Option<String>, Query, description = "only this tenant's tasks"),
        ("key" = Option<String>, Query, description = "key of an object"),
        ("event" = Option<u64>, Query, description = "EventId of the event that they were created for"),
        ("start" = Option<String>, Query, description = "created at or after this time (RFC 3339)"),
        ("end" = Option<String>, Query, description = "created before this time (RFC 3339)"),
        ("limit" = Option<u16>, Query, description = "1 to 1000, 100 if not given"),
        ("cursor" = Option<String>, Query, description = "the `next` of the previous response"),
    ),
    responses((status = 200, description = "The tasks", body = TaskList)),
)]
pub(crate) async fn list_tasks(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<TaskList>, Problem> {
    let query = RequestQuery::from_uri(&uri, &QUERY_PARAMETERS)?;
    let StatusFilter { statuses, error_reasons } =
        query.parse_parameter_with("status", StatusFilter::parse)?.unwrap_or_default();
    let period = query.parse_period()?;
    let filter = TaskFilter {
        statuses,
        error_reasons,
        handler: parse_handler_or_source(&query)?,
        subject_name: query.get("collection").map(Into::into),
        event_id: query.parse_parameter("event")?,
        tenant: caller.resolve_requested_tenant(query.parse_parameter("tenant")?)?,
        key: query.parse_parameter("key")?,
        created_from: period.start,
        created_before: period.end,
    };
    let limit = query.parse_limit(DEFAULT_LIMIT, MAX_LIMIT)?;
    let cursor = query.parse_parameter_with("cursor", parse_cursor)?;
    Ok(Json(read_task_list(&app, filter, limit, cursor).await?))
}

/// Parses `handler` or `source`, which mean the same.
fn parse_handler_or_source(query: &RequestQuery) -> Result<Option<HandlerName>, Problem> {
    match (query.parse_parameter("handler")?, query.parse_parameter("source")?) {
        (Some(handler), Some(source)) if handler != source => {
            Err(Problem::malformed("`source` and `handler` mean the same; give one").with_parameter("source"))
        }
        (handler, source) => Ok(handler.or(source)),
    }
}

/// Reads pages until there are enough tasks, because a store page may be short.
async fn read_task_list(
    app: &App,
    filter: TaskFilter,
    limit: usize,
    mut before: Option<TaskSeq>,
) -> Result<TaskList, Problem> {
    let mut tasks: Vec<TaskBody> = Vec::new();
    let mut head = None;
    for _ in 0..MAX_STORE_PAGES {
        let page = app.store().list_tasks(filter.clone(), before, limit - tasks.len()).await?;
        head.get_or_insert(page.journal_range.newest_event_id);
        tasks.extend(page.tasks.iter().map(TaskBody::from));
        before = page.next_cursor;
        if before.is_none() || tasks.len() >= limit {
            break;
        }
    }
    let event_id = head.unwrap_or_default().get();
    Ok(TaskList { newest_event_id: event_id, tasks, next: before.map(|seq| seq.to_string()) })
}

/// The filter for a status: a public one (`FAILED`) or an internal one (`error`).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StatusFilter {
    pub(crate) statuses: Vec<TaskStatus>,
    /// End reasons of tasks in `error`; any if empty.
    pub(crate) error_reasons: Vec<ErrorReason>,
}

impl StatusFilter {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(filter) = Self::from_public_status(text) {
            return Ok(filter);
        }
        match TaskStatus::ALL.into_iter().find(|status| status.as_str() == text) {
            Some(status) => Ok(Self { statuses: vec![status], error_reasons: vec![] }),
            None => Err(format!(
                "{text:?} is not a status; there are SCHEDULED, RUNNING, SUCCESS, FAILED, CANCELED, and new, \
                 scheduled, locked, done, error, missing"
            )),
        }
    }

    /// The filter for a public status.
    pub(crate) fn from_public_status(text: &str) -> Option<Self> {
        let new_filter = |statuses: &[TaskStatus], reasons: &[ErrorReason]| {
            Some(Self { statuses: statuses.to_vec(), error_reasons: reasons.to_vec() })
        };
        match text {
            "SCHEDULED" => new_filter(&[TaskStatus::New, TaskStatus::Scheduled], &[]),
            "RUNNING" => new_filter(&[TaskStatus::Locked], &[]),
            "SUCCESS" => new_filter(&[TaskStatus::Done], &[]),
            "FAILED" => new_filter(
                &[TaskStatus::Error, TaskStatus::Missing],
                &[ErrorReason::Failed, ErrorReason::Crashed],
            ),
            "CANCELED" => new_filter(&[TaskStatus::Error], &[ErrorReason::Canceled]),
            _ => None,
        }
    }
}

fn parse_cursor(text: &str) -> Result<TaskSeq, &'static str> {
    let number = text.parse().ok().filter(|number: &i64| *number >= 0 && !text.starts_with('+'));
    number.map(TaskSeq).ok_or("a cursor is the `next` of a response")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_and_internal_statuses_are_parsed() {
        assert_eq!(
            StatusFilter::parse("SCHEDULED").unwrap().statuses,
            [TaskStatus::New, TaskStatus::Scheduled]
        );
        assert_eq!(StatusFilter::parse("CANCELED").unwrap().error_reasons, [ErrorReason::Canceled]);
        let error = StatusFilter { statuses: vec![TaskStatus::Error], error_reasons: vec![] };
        assert_eq!(StatusFilter::parse("error").unwrap(), error);
        assert!(StatusFilter::parse("Scheduled").is_err());
    }
}
