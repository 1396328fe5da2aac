//! Pausing and blocking chains.

use axum::Json;
use pointsman_api::{ChainDetail, RuleRequestBody};
use pointsman_core::chain::ChainPath;
use pointsman_core::{RuleKind, RuleScope};

use super::chain_bodies::find_chain;
use crate::app_state::App;
use crate::auth::Caller;
use crate::json_body::RuleRequest;
use crate::problem::Problem;
use crate::rules;

/// Pauses a chain. After the response, no new attempt of a step starts.
#[utoipa::path(
    put,
    path = "/api/v1/chains/{path}/pause",
    operation_id = "pause_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, not encoded, without its leading slash")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The chain after the change", body = ChainDetail)),
)]
pub(crate) async fn pause_chain(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    request: RuleRequest,
) -> Result<Json<ChainDetail>, Problem> {
    set_chain_rule(app, caller, RuleKind::Pause, path, request).await
}

/// Lifts a pause.
#[utoipa::path(
    delete,
    path = "/api/v1/chains/{path}/pause",
    operation_id = "unpause_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, not encoded, without its leading slash")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The chain after the change", body = ChainDetail)),
)]
pub(crate) async fn unpause_chain(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    request: RuleRequest,
) -> Result<Json<ChainDetail>, Problem> {
    lift_chain_rule(app, caller, RuleKind::Pause, path, request).await
}

/// Blocks a chain: like a pause, but only an admin can lift it.
#[utoipa::path(
    put,
    path = "/api/v1/chains/{path}/block",
    operation_id = "block_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, not encoded, without its leading slash")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The chain after the change", body = ChainDetail)),
)]
pub(crate) async fn block_chain(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    request: RuleRequest,
) -> Result<Json<ChainDetail>, Problem> {
    set_chain_rule(app, caller, RuleKind::Block, path, request).await
}

/// Lifts a block.
#[utoipa::path(
    delete,
    path = "/api/v1/chains/{path}/block",
    operation_id = "unblock_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, not encoded, without its leading slash")),
    request_body(content = Option<RuleRequestBody>),
    responses((status = 200, description = "The chain after the change", body = ChainDetail)),
)]
pub(crate) async fn unblock_chain(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    request: RuleRequest,
) -> Result<Json<ChainDetail>, Problem> {
    lift_chain_rule(app, caller, RuleKind::Block, path, request).await
}

async fn set_chain_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    path: ChainPath,
    request: RuleRequest,
) -> Result<Json<ChainDetail>, Problem> {
    let tenant = caller.restrict_to_own_tenant(request.tenant)?;
    find_chain(app, caller, &path).await?;
    rules::set_rule(app, caller, kind, RuleScope::Chain(path.clone()), tenant, request.reason).await?;
    find_chain(app, caller, &path).await.map(Json)
}

async fn lift_chain_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    path: ChainPath,
    request: RuleRequest,
) -> Result<Json<ChainDetail>, Problem> {
    let tenant = caller.restrict_to_own_tenant(request.tenant)?;
    // Read before the rule is lifted: a chain that is no longer defined disappears with its last rule.
    let before = find_chain(app, caller, &path).await?;
    rules::lift_rule(app, caller, kind, RuleScope::Chain(path.clone()), tenant, request.reason).await?;
    Ok(Json(find_chain(app, caller, &path).await.unwrap_or_else(|_| clear_rules_in_body(before))))
}

fn clear_rules_in_body(mut found: ChainDetail) -> ChainDetail {
    found.chain.rules.clear();
    found
}
