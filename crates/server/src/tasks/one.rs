//! One task, and what a person can do to it.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{AttemptBody, RunningBody, TaskBody, TaskDetail};
use pointsman_core::TaskId;
use pointsman_core::journal::Extent;
use pointsman_core::task::Task;

use crate::action::Nothing;
use crate::app::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::problem::Problem;
use crate::query::Query;
use crate::segment::{Segment, TaskName};

/// One task with its attempts, result and errors.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}",
    operation_id = "show_task",
    tag = "tasks",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The task", body = TaskDetail)),
)]
pub(crate) async fn task(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    uri: Uri,
) -> Result<Json<TaskDetail>, Problem> {
    Query::of(&uri, &[])?;
    find(&app, &caller, &id).await.map(Json)
}

/// Runs a task in `error` again.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/{id}/retry",
    operation_id = "retry_task",
    tag = "tasks",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The task as it stands now", body = TaskDetail)),
)]
pub(crate) async fn retry(
    Operator(caller): Operator,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    _: Nothing,
) -> Result<Json<TaskDetail>, Problem> {
    find(&app, &caller, &id).await?;
    let inner = app.clone();
    app.deed(async move {
        inner.engine.retry(&id).await??;
        inner.note(&caller, "retry", format!("task {id}"), "").await;
        find(&inner, &caller, &id).await.map(Json)
    })
    .await
}

/// Ends a task. If it runs, its attempt is cut short.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/{id}/cancel",
    operation_id = "cancel_task",
    tag = "tasks",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The task as it stands now", body = TaskDetail)),
)]
pub(crate) async fn cancel(
    Operator(caller): Operator,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    _: Nothing,
) -> Result<Json<TaskDetail>, Problem> {
    find(&app, &caller, &id).await?;
    let inner = app.clone();
    app.deed(async move {
        inner.engine.cancel(&id).await??;
        inner.note(&caller, "cancel", format!("task {id}"), "").await;
        find(&inner, &caller, &id).await.map(Json)
    })
    .await
}

/// The task with all that is known of it, if the caller may see it.
pub(super) async fn find(app: &App, caller: &Caller, id: &TaskId) -> Result<TaskDetail, Problem> {
    let (task, extent) = visible(app, caller, id).await?;
    Ok(TaskDetail {
        snapshot: extent.head.get(),
        task: TaskBody::from(&task),
        running: RunningBody::of(&task),
        attempts: task.attempts.iter().map(AttemptBody::from).collect(),
        result: task.result,
    })
}

/// The task, if the caller may see it.
pub(crate) async fn visible(app: &App, caller: &Caller, id: &TaskId) -> Result<(Task, Extent), Problem> {
    let found = app.store().task(id).await?.filter(|(task, _)| caller.sees(&task.tenant));
    found.ok_or_else(|| Problem::not_found(format!("there is no task {:?}", id.as_str())))
}
