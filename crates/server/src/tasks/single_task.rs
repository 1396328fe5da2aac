//! One task: showing, retrying and cancelling it.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{EndedAttemptBody, RunningAttemptBody, TaskBody, TaskDetail};
use pointsman_core::TaskId;
use pointsman_core::journal::JournalRange;
use pointsman_core::task::Task;

use crate::app_state::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::json_body::EmptyRequest;
use crate::path_segment::{PathSegment, TaskIdSegment};
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// One task with its attempts, result and errors.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}",
    operation_id = "show_task",
    tag = "tasks",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The task", body = TaskDetail)),
)]
pub(crate) async fn show_task(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    uri: Uri,
) -> Result<Json<TaskDetail>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    find_task_detail(&app, &caller, &id).await.map(Json)
}

/// Runs a task in `error` again.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/{id}/retry",
    operation_id = "retry_task",
    tag = "tasks",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The task after the change", body = TaskDetail)),
)]
pub(crate) async fn retry_task(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    _: EmptyRequest,
) -> Result<Json<TaskDetail>, Problem> {
    find_task_detail(&app, &caller, &id).await?;
    let inner = app.clone();
    app.run_change_to_completion(async move {
        inner.engine.retry_task(&id).await??;
        inner.record_audit_entry(&caller, "retry", format!("task {id}"), "").await;
        find_task_detail(&inner, &caller, &id).await.map(Json)
    })
    .await
}

/// Cancels a task. A running attempt is aborted.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/{id}/cancel",
    operation_id = "cancel_task",
    tag = "tasks",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The task after the change", body = TaskDetail)),
)]
pub(crate) async fn cancel_task(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    _: EmptyRequest,
) -> Result<Json<TaskDetail>, Problem> {
    find_task_detail(&app, &caller, &id).await?;
    let inner = app.clone();
    app.run_change_to_completion(async move {
        inner.engine.cancel_task(&id).await??;
        inner.record_audit_entry(&caller, "cancel", format!("task {id}"), "").await;
        find_task_detail(&inner, &caller, &id).await.map(Json)
    })
    .await
}

/// Finds a task with its attempts and result, if the caller may see it.
pub(super) async fn find_task_detail(app: &App, caller: &Caller, id: &TaskId) -> Result<TaskDetail, Problem> {
    let (task, journal_range) = find_visible_task(app, caller, id).await?;
    Ok(TaskDetail {
        newest_event_id: journal_range.newest_event_id.get(),
        task: TaskBody::from(&task),
        running_attempt: RunningAttemptBody::from_task(&task),
        attempts: task.attempts.iter().map(EndedAttemptBody::from).collect(),
        result: task.result,
    })
}

/// Finds a task, if the caller may see it.
pub(crate) async fn find_visible_task(
    app: &App,
    caller: &Caller,
    id: &TaskId,
) -> Result<(Task, JournalRange), Problem> {
    let found = app.store().read_task(id).await?.filter(|(task, _)| caller.can_see_tenant(&task.tenant));
    found.ok_or_else(|| Problem::not_found(format!("there is no task {:?}", id.as_str())))
}
