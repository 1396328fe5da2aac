//! Holding the steps of chains.

use axum::Json;
use pointsman_api::{ChainDetail, HoldBody};
use pointsman_core::chain::ChainPath;
use pointsman_core::{Place, RuleKind};

use super::overview::find;
use crate::action::Hold;
use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::rules;

/// Pauses a chain: when this answers, no new attempt of a step starts.
#[utoipa::path(
    put,
    path = "/api/v1/chains/{path}/pause",
    operation_id = "pause_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, raw, without its leading slash")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The chain as it stands now", body = ChainDetail)),
)]
pub(crate) async fn pause(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    hold: Hold,
) -> Result<Json<ChainDetail>, Problem> {
    set(app, caller, RuleKind::Pause, path, hold).await
}

/// Lifts a pause.
#[utoipa::path(
    delete,
    path = "/api/v1/chains/{path}/pause",
    operation_id = "unpause_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, raw, without its leading slash")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The chain as it stands now", body = ChainDetail)),
)]
pub(crate) async fn unpause(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    hold: Hold,
) -> Result<Json<ChainDetail>, Problem> {
    lift(app, caller, RuleKind::Pause, path, hold).await
}

/// Blocks a chain: as a pause, but only an admin lifts it.
#[utoipa::path(
    put,
    path = "/api/v1/chains/{path}/block",
    operation_id = "block_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, raw, without its leading slash")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The chain as it stands now", body = ChainDetail)),
)]
pub(crate) async fn block(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    hold: Hold,
) -> Result<Json<ChainDetail>, Problem> {
    set(app, caller, RuleKind::Block, path, hold).await
}

/// Lifts a block.
#[utoipa::path(
    delete,
    path = "/api/v1/chains/{path}/block",
    operation_id = "unblock_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, raw, without its leading slash")),
    request_body(content = Option<HoldBody>),
    responses((status = 200, description = "The chain as it stands now", body = ChainDetail)),
)]
pub(crate) async fn unblock(
    app: &App,
    caller: &Caller,
    path: ChainPath,
    hold: Hold,
) -> Result<Json<ChainDetail>, Problem> {
    lift(app, caller, RuleKind::Block, path, hold).await
}

async fn set(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    path: ChainPath,
    hold: Hold,
) -> Result<Json<ChainDetail>, Problem> {
    let tenant = caller.tenant(hold.tenant)?;
    find(app, caller, &path).await?;
    rules::set(app, caller, kind, Place::Chain(path.clone()), tenant, hold.reason).await?;
    find(app, caller, &path).await.map(Json)
}

async fn lift(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    path: ChainPath,
    hold: Hold,
) -> Result<Json<ChainDetail>, Problem> {
    let tenant = caller.tenant(hold.tenant)?;
    // Read before, because a chain of which only this rule was left is gone with it.
    let before = find(app, caller, &path).await?;
    rules::lift(app, caller, kind, Place::Chain(path.clone()), tenant, hold.reason).await?;
    Ok(Json(find(app, caller, &path).await.unwrap_or_else(|_| without_rules(before))))
}

fn without_rules(mut found: ChainDetail) -> ChainDetail {
    found.chain.rules.clear();
    found
}
