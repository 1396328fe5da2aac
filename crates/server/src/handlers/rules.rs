//! Pausing and blocking handlers, sources and collections.

use std::str::FromStr;

use axum::Json;
use axum::extract::State;
use pointsman_api::{HandlerDetail, RuleRequestBody};
use pointsman_core::names::BadName;
use pointsman_core::{HandlerName, RuleKind, RuleScope};

use super::handler_bodies::{find_rule_target, keep_busiest_queues_in_detail};
use crate::app_state::App;
use crate::auth::{Admin, Caller, Operator};
use crate::json_body::RuleRequest;
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use crate::rules;

/// Pauses a handler. After the response, no new attempt starts.
#[utoipa::path(
    put,
    path = "/api/v1/handlers/{name}/pause",
    operation_id = "pause_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler, a source, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The handler after the change", body = HandlerDetail)),
)]
pub(crate) async fn pause_handler(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(HandlerRuleTarget(scope)): PathSegment<HandlerRuleTarget>,
    request: RuleRequest,
) -> Result<Json<HandlerDetail>, Problem> {
    set_handler_rule(&app, &caller, RuleKind::Pause, scope, request).await
}

/// Lifts a pause.
#[utoipa::path(
    delete,
    path = "/api/v1/handlers/{name}/pause",
    operation_id = "unpause_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler, a source, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The handler after the change", body = HandlerDetail)),
)]
pub(crate) async fn unpause_handler(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(HandlerRuleTarget(scope)): PathSegment<HandlerRuleTarget>,
    request: RuleRequest,
) -> Result<Json<HandlerDetail>, Problem> {
    lift_handler_rule(&app, &caller, RuleKind::Pause, scope, request).await
}

/// Blocks a handler: like a pause, but only an admin can lift it.
#[utoipa::path(
    put,
    path = "/api/v1/handlers/{name}/block",
    operation_id = "block_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler, a source, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The handler after the change", body = HandlerDetail)),
)]
pub(crate) async fn block_handler(
    Admin(caller): Admin,
    State(app): State<App>,
    PathSegment(HandlerRuleTarget(scope)): PathSegment<HandlerRuleTarget>,
    request: RuleRequest,
) -> Result<Json<HandlerDetail>, Problem> {
    set_handler_rule(&app, &caller, RuleKind::Block, scope, request).await
}

/// Lifts a block.
#[utoipa::path(
    delete,
    path = "/api/v1/handlers/{name}/block",
    operation_id = "unblock_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler, a source, or `source%2Fcollection`")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The handler after the change", body = HandlerDetail)),
)]
pub(crate) async fn unblock_handler(
    Admin(caller): Admin,
    State(app): State<App>,
    PathSegment(HandlerRuleTarget(scope)): PathSegment<HandlerRuleTarget>,
    request: RuleRequest,
) -> Result<Json<HandlerDetail>, Problem> {
    lift_handler_rule(&app, &caller, RuleKind::Block, scope, request).await
}

async fn set_handler_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    scope: RuleScope,
    request: RuleRequest,
) -> Result<Json<HandlerDetail>, Problem> {
    let tenant = caller.restrict_to_own_tenant(request.tenant)?;
    find_rule_target(app, caller, &scope).await?;
    rules::set_rule(app, caller, kind, scope.clone(), tenant, request.reason).await?;
    find_rule_target(app, caller, &scope).await.map(|found| Json(keep_busiest_queues_in_detail(found)))
}

async fn lift_handler_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    scope: RuleScope,
    request: RuleRequest,
) -> Result<Json<HandlerDetail>, Problem> {
    let tenant = caller.restrict_to_own_tenant(request.tenant)?;
    // Read before the rule is lifted: a handler without definition and tasks disappears with its last rule.
    let before = find_rule_target(app, caller, &scope).await?;
    rules::lift_rule(app, caller, kind, scope.clone(), tenant, request.reason).await?;
    let after = find_rule_target(app, caller, &scope).await.unwrap_or_else(|_| clear_rules_in_body(before));
    Ok(Json(keep_busiest_queues_in_detail(after)))
}

fn clear_rules_in_body(mut found: HandlerDetail) -> HandlerDetail {
    found.handler.rules.clear();
    found
}

/// The target of a rule under `/handlers`: a handler, a source, or a collection of one.
pub(crate) struct HandlerRuleTarget(RuleScope);

impl FromStr for HandlerRuleTarget {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        Ok(Self(match text.contains('/') {
            true => RuleScope::Collection(text.parse()?),
            false => RuleScope::Handler(HandlerName::new(text)?),
        }))
    }
}
