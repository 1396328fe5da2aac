//! Pausing and blocking schedules. Their planned times are then skipped, and the ledger records it.

use axum::Json;
use axum::extract::State;
use pointsman_api::{RuleRequestBody, ScheduleDetail};
use pointsman_core::{RuleKind, RuleScope, ScheduleName};

use super::schedule_bodies::find_schedule;
use crate::app_state::App;
use crate::auth::{Admin, Caller, Operator};
use crate::json_body::RuleRequest;
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use crate::rules;

/// Pauses a schedule. After the response, it no longer fires.
#[utoipa::path(
    put,
    path = "/api/v1/schedules/{name}/pause",
    operation_id = "pause_schedule",
    tag = "schedules",
    params(("name" = String, Path, description = "a schedule's name, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The schedule after the change", body = ScheduleDetail)),
)]
pub(crate) async fn pause_schedule(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(name): PathSegment<ScheduleName>,
    request: RuleRequest,
) -> Result<Json<ScheduleDetail>, Problem> {
    set_schedule_rule(&app, &caller, RuleKind::Pause, name, request).await
}

/// Lifts a pause. Missed times are caught up according to the schedule's `catch_up`.
#[utoipa::path(
    delete,
    path = "/api/v1/schedules/{name}/pause",
    operation_id = "unpause_schedule",
    tag = "schedules",
    params(("name" = String, Path, description = "a schedule's name, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The schedule after the change", body = ScheduleDetail)),
)]
pub(crate) async fn unpause_schedule(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(name): PathSegment<ScheduleName>,
    request: RuleRequest,
) -> Result<Json<ScheduleDetail>, Problem> {
    lift_schedule_rule(&app, &caller, RuleKind::Pause, name, request).await
}

/// Blocks a schedule: like a pause, but only an admin can lift it.
#[utoipa::path(
    put,
    path = "/api/v1/schedules/{name}/block",
    operation_id = "block_schedule",
    tag = "schedules",
    params(("name" = String, Path, description = "a schedule's name, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The schedule after the change", body = ScheduleDetail)),
)]
pub(crate) async fn block_schedule(
    Admin(caller): Admin,
    State(app): State<App>,
    PathSegment(name): PathSegment<ScheduleName>,
    request: RuleRequest,
) -> Result<Json<ScheduleDetail>, Problem> {
    set_schedule_rule(&app, &caller, RuleKind::Block, name, request).await
}

/// Lifts a block.
#[utoipa::path(
    delete,
    path = "/api/v1/schedules/{name}/block",
    operation_id = "unblock_schedule",
    tag = "schedules",
    params(("name" = String, Path, description = "a schedule's name, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The schedule after the change", body = ScheduleDetail)),
)]
pub(crate) async fn unblock_schedule(
    Admin(caller): Admin,
    State(app): State<App>,
    PathSegment(name): PathSegment<ScheduleName>,
    request: RuleRequest,
) -> Result<Json<ScheduleDetail>, Problem> {
    lift_schedule_rule(&app, &caller, RuleKind::Block, name, request).await
}

async fn set_schedule_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    name: ScheduleName,
    request: RuleRequest,
) -> Result<Json<ScheduleDetail>, Problem> {
    reject_tenant(&request)?;
    find_schedule(app, caller, &name).await?;
    rules::set_rule(app, caller, kind, RuleScope::Schedule(name.clone()), None, request.reason).await?;
    find_schedule(app, caller, &name).await.map(Json)
}

async fn lift_schedule_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    name: ScheduleName,
    request: RuleRequest,
) -> Result<Json<ScheduleDetail>, Problem> {
    reject_tenant(&request)?;
    // Read before the rule is lifted: a schedule that is no longer defined disappears with its last rule.
    let before = find_schedule(app, caller, &name).await?;
    rules::lift_rule(app, caller, kind, RuleScope::Schedule(name.clone()), None, request.reason).await?;
    Ok(Json(find_schedule(app, caller, &name).await.unwrap_or_else(|_| clear_rules_in_body(before))))
}

fn clear_rules_in_body(mut found: ScheduleDetail) -> ScheduleDetail {
    found.schedule.rules.clear();
    found.schedule.is_paused_or_blocked = false;
    found
}

fn reject_tenant(request: &RuleRequest) -> Result<(), Problem> {
    match request.tenant {
        None => Ok(()),
        Some(_) => {
            Err(Problem::unprocessable("a schedule has no tenants; leave out `tenant`")
                .with_pointer("/tenant"))
        }
    }
}
