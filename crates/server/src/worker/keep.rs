//! What a worker says while it is at a task.

use axum::Json;
use axum::extract::State;
use pointsman_api::worker::{HeartbeatBody, Leased, Logged, LogsBody};
use pointsman_core::wire::Fault;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::claim::lease;
use super::lines::lines;
use super::{fence, lost, own};
use crate::action::Members;
use crate::app::App;
use crate::auth::Worker;
use crate::problem::Problem;
use crate::segment::{Segment, TaskName};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct Beat {
    fence: Option<Box<RawValue>>,
    lease: Option<Box<RawValue>>,
}

/// Keeps a task for longer: for as long as it was claimed, unless `lease` says otherwise. A worker whose task was cancelled is told so here, by 409.
#[utoipa::path(
    post,
    path = "/api/v1/worker/{id}/heartbeat",
    operation_id = "keep_task",
    tag = "worker",
    params(("id" = String, Path, description = "a task's id")),
    request_body(content = HeartbeatBody),
    responses(
        (status = 200, description = "Until when the worker has the task now", body = Leased),
        (status = 409, description = "The task is no longer this worker's",
            body = pointsman_api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn heartbeat(
    Worker(caller): Worker,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    Members(said): Members<Beat>,
) -> Result<Json<Leased>, Problem> {
    let (fence, lease) = (fence(said.fence)?, said.lease.as_deref().map(lease).transpose()?);
    own(&app, &caller, &id, fence).await?;
    let until = app.engine.renew(&id, fence, lease).await?.map_err(lost)?;
    Ok(Json(Leased { lease_until: until.to_string() }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct Lines {
    fence: Option<Box<RawValue>>,
    logs: Option<Box<RawValue>>,
}

/// Adds lines to the log of a task that the worker has.
#[utoipa::path(
    post,
    path = "/api/v1/worker/{id}/logs",
    operation_id = "add_logs",
    tag = "worker",
    params(("id" = String, Path, description = "a task's id")),
    request_body(content = LogsBody),
    responses(
        (status = 200, description = "How many lines were added", body = Logged),
        (status = 409, description = "The task is no longer this worker's",
            body = pointsman_api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn logs(
    Worker(caller): Worker,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    Members(said): Members<Lines>,
) -> Result<Json<Logged>, Problem> {
    let fence = fence(said.fence)?;
    let logs = said.logs.ok_or_else(|| Fault::new("/logs", "the lines are needed"))?;
    let lines = lines("/logs", &logs, app.now())?;
    own(&app, &caller, &id, fence).await?;
    let logged = app.engine.pull_log(&id, fence, lines).await?.map_err(lost)?;
    Ok(Json(Logged { logged: logged as u64 }))
}
