//! Heartbeats and log lines of a task that a worker has leased.

use axum::Json;
use axum::extract::State;
use pointsman_api::worker::{AddLogsBody, AddLogsResponse, HeartbeatBody, HeartbeatResponse};
use pointsman_core::event_json_parser::JsonError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::claim::parse_lease;
use super::log_lines::parse_log_lines;
use super::{find_tenant_and_result_limit_of_task, lease_lost_problem, parse_fence};
use crate::app_state::App;
use crate::auth::Worker;
use crate::json_body::OptionalJsonBody;
use crate::path_segment::{PathSegment, TaskIdSegment};
use crate::problem::Problem;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct HeartbeatRequest {
    fence: Option<Box<RawValue>>,
    lease: Option<Box<RawValue>>,
}

/// Renews the lease of a task: by the claimed lease, or by `lease` if given. If the task was cancelled, this returns
/// 409.
#[utoipa::path(
    post,
    path = "/api/v1/worker/{id}/heartbeat",
    operation_id = "keep_task",
    tag = "worker",
    params(("id" = String, Path, description = "a task's id")),
    request_body(content = HeartbeatBody),
    responses(
        (status = 200, description = "The end of the renewed lease", body = HeartbeatResponse),
        (status = 409, description = "The task is no longer leased to this worker",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn renew_lease(
    Worker(caller): Worker,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    OptionalJsonBody(members): OptionalJsonBody<HeartbeatRequest>,
) -> Result<Json<HeartbeatResponse>, Problem> {
    let (fence, lease) =
        (parse_fence(members.fence)?, members.lease.as_deref().map(parse_lease).transpose()?);
    find_tenant_and_result_limit_of_task(&app, &caller, &id, fence).await?;
    let until = app.engine.renew_lease(&id, fence, lease).await?.map_err(lease_lost_problem)?;
    Ok(Json(HeartbeatResponse { lease_until: until.to_string() }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct AddLogsRequest {
    fence: Option<Box<RawValue>>,
    logs: Option<Box<RawValue>>,
}

/// Adds lines to the log of a task that the worker has leased.
#[utoipa::path(
    post,
    path = "/api/v1/worker/{id}/logs",
    operation_id = "add_logs",
    tag = "worker",
    params(("id" = String, Path, description = "a task's id")),
    request_body(content = AddLogsBody),
    responses(
        (status = 200, description = "The number of lines added", body = AddLogsResponse),
        (status = 409, description = "The task is no longer leased to this worker",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn add_logs(
    Worker(caller): Worker,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    OptionalJsonBody(members): OptionalJsonBody<AddLogsRequest>,
) -> Result<Json<AddLogsResponse>, Problem> {
    let fence = parse_fence(members.fence)?;
    let logs =
        members.logs.ok_or_else(|| JsonError::new("/logs", "`logs` is required: a list of log lines"))?;
    let lines = parse_log_lines("/logs", &logs, app.now())?;
    find_tenant_and_result_limit_of_task(&app, &caller, &id, fence).await?;
    let logged = app.engine.append_task_log(&id, fence, lines).await?.map_err(lease_lost_problem)?;
    Ok(Json(AddLogsResponse { added_line_count: logged as u64 }))
}
