//! Stopping chains and setting the action of their nodes. Both affect the orders of every tenant.

use axum::Json;
use pointsman_api::{ChainBody, ChainDetail, SetChainNodeActionBody, SetChainStateBody};
use pointsman_core::chain::{ChainNodeAction, ChainNodeId, ChainPath};
use pointsman_core::event_json_parser::{JsonError, parse_string};
use pointsman_core::suggestion::did_you_mean_suffix;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::chain_bodies::find_chain;
use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct SetChainStateRequest {
    state: Option<Box<RawValue>>,
}

/// Stops a chain or starts it again. After the response, no step of a stopped chain starts.
#[utoipa::path(
    put,
    path = "/api/v1/chains/{path}/state",
    operation_id = "set_chain_state",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, not encoded, without its leading slash")),
    request_body(content = SetChainStateBody),
    responses((status = 200, description = "The chain after the change", body = ChainDetail)),
)]
pub(crate) async fn set_chain_state(
    app: &App,
    caller: Caller,
    path: ChainPath,
    members: SetChainStateRequest,
) -> Result<Json<ChainDetail>, Problem> {
    caller.require_access_to_all_tenants("a chain has orders of every tenant")?;
    let state = members
        .state
        .ok_or_else(|| JsonError::new("/state", "`state` is required: `running` or `stopped`"))?;
    let stopped = match parse_string("/state", &state)?.as_str() {
        "running" => false,
        "stopped" => true,
        other => {
            return Err(JsonError::new("/state", format!("{other:?} is neither running nor stopped")).into());
        }
    };
    find_defined_chain(app, &caller, &path).await?;
    let inner = app.clone();
    app.run_change_to_completion(async move {
        inner.engine.set_chain_stopped(&path, stopped).await??;
        let action = if stopped { "stop" } else { "start" };
        inner.record_audit_entry(&caller, action, format!("chain {path}"), "").await;
        find_chain(&inner, &caller, &path).await.map(Json)
    })
    .await
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct SetChainNodeActionRequest {
    action: Option<Box<RawValue>>,
}

/// Sets the action of a node: `process`, `stop` or `next_state`.
#[utoipa::path(
    put,
    path = "/api/v1/chains/{path}/nodes/{id}/action",
    operation_id = "set_node_action",
    tag = "chains",
    params(
        ("path" = String, Path, description = "a chain's path, not encoded, without its leading slash"),
        ("id" = String, Path, description = "a node of the chain"),
    ),
    request_body(content = SetChainNodeActionBody),
    responses(
        (status = 200, description = "The chain after the change", body = ChainDetail),
        (status = 422, description = "The node is an end node",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn set_chain_node_action(
    app: &App,
    caller: Caller,
    path: ChainPath,
    node: ChainNodeId,
    members: SetChainNodeActionRequest,
) -> Result<Json<ChainDetail>, Problem> {
    caller.require_access_to_all_tenants("a node has orders of every tenant")?;
    let action = members.action.ok_or_else(|| {
        JsonError::new("/action", "`action` is required: `process`, `stop` or `next_state`")
    })?;
    let action = parse_chain_node_action(&parse_string("/action", &action)?)?;
    let chain = find_defined_chain(app, &caller, &path).await?;
    check_is_step_node(&chain, &node)?;
    let inner = app.clone();
    app.run_change_to_completion(async move {
        inner.engine.set_chain_node_action(&path, &node, action).await??;
        inner
            .record_audit_entry(&caller, "set", format!("node {node} of chain {path}"), action.as_str())
            .await;
        find_chain(&inner, &caller, &path).await.map(Json)
    })
    .await
}

fn parse_chain_node_action(text: &str) -> Result<ChainNodeAction, JsonError> {
    let action = ChainNodeAction::ALL.into_iter().find(|action| action.as_str() == text);
    action.ok_or_else(|| {
        JsonError::new("/action", format!("{text:?} is not one of process, stop and next_state"))
    })
}

async fn find_defined_chain(app: &App, caller: &Caller, path: &ChainPath) -> Result<ChainBody, Problem> {
    let found = find_chain(app, caller, path).await?.chain;
    match found.defined {
        true => Ok(found),
        false => Err(Problem::not_found(format!("the chain {path} is no longer defined"))),
    }
}

/// Requires a node that runs a step. An end node runs nothing, so it has no action.
fn check_is_step_node(chain: &ChainBody, node: &ChainNodeId) -> Result<(), Problem> {
    let path = &chain.path;
    match chain.nodes.iter().find(|candidate| candidate.id == node.as_str()) {
        None => {
            let hint = did_you_mean_suffix(node.as_str(), chain.nodes.iter().map(|node| node.id.as_str()));
            Err(Problem::not_found(format!("the chain {path} has no node {node}{hint}")))
        }
        Some(found) if found.is_end => {
            let detail = format!("{node} is an end of {path}: orders finish there, and no step runs");
            Err(Problem::unprocessable(detail).with_pointer("/action"))
        }
        Some(_) => Ok(()),
    }
}
