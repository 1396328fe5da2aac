//! Setting and lifting rules.

use axum::Json;
use axum::extract::State;
use pointsman_api::{HandlerDetail, HoldBody};
use pointsman_core::{HandlerName, Rule, RuleKind};

use super::overview::find;
use crate::action::Hold;
use crate::app::App;
use crate::auth::{Admin, Caller, Operator};
use crate::problem::Problem;
use crate::segment::Segment;
use pointsman_engine::now;

/// Pauses a handler: when this answers, no new attempt starts.
#[utoipa::path(
    put,
    path = "/api/v1/handlers/{name}/pause",
    operation_id = "pause_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The handler as it stands now", body = HandlerDetail)),
)]
pub(crate) async fn pause(
    Operator(caller): Operator,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    request: Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    set(&app, &caller, RuleKind::Pause, name, request).await
}

/// Lifts a pause.
#[utoipa::path(
    delete,
    path = "/api/v1/handlers/{name}/pause",
    operation_id = "unpause_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The handler as it stands now", body = HandlerDetail)),
)]
pub(crate) async fn unpause(
    Operator(caller): Operator,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    request: Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    lift(&app, &caller, RuleKind::Pause, name, request).await
}

/// Blocks a handler: as a pause, but only an admin lifts it.
#[utoipa::path(
    put,
    path = "/api/v1/handlers/{name}/block",
    operation_id = "block_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The handler as it stands now", body = HandlerDetail)),
)]
pub(crate) async fn block(
    Admin(caller): Admin,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    request: Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    set(&app, &caller, RuleKind::Block, name, request).await
}

/// Lifts a block.
#[utoipa::path(
    delete,
    path = "/api/v1/handlers/{name}/block",
    operation_id = "unblock_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The handler as it stands now", body = HandlerDetail)),
)]
pub(crate) async fn unblock(
    Admin(caller): Admin,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    request: Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    lift(&app, &caller, RuleKind::Block, name, request).await
}

/// Sets a rule in the place of one that stands there already.
async fn set(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    handler: HandlerName,
    hold: Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    let tenant = caller.tenant(hold.tenant)?;
    find(app, caller, &handler).await?;
    let by = caller.name.clone();
    let rule = Rule { kind, handler: handler.clone(), tenant, by, reason: hold.reason, since: now() };
    app.engine.hold(rule).await?;
    find(app, caller, &handler).await.map(Json)
}

/// Lifts a rule. If there is none, all is as wished.
async fn lift(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    handler: HandlerName,
    hold: Hold,
) -> Result<Json<HandlerDetail>, Problem> {
    let tenant = caller.tenant(hold.tenant)?;
    find(app, caller, &handler).await?;
    app.engine.release(kind, &handler, tenant.as_ref()).await?;
    find(app, caller, &handler).await.map(Json)
}
