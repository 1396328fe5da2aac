//! `/api/v1/chains`: chains with the number of orders at each node, stopping them, and the actions of their nodes.
//!
//! The path of a chain has folders, and the endpoint follows it in the URL: `…/state`, `…/nodes/ID/action`, `…/pause`,
//! `…/block`.

mod chain_bodies;
mod rule_target;
mod state_and_node_action;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::routing::get;
use http::Uri;
use pointsman_api::{ChainDetail, ChainList};
use pointsman_core::RuleKind;
use pointsman_core::chain::{ChainNodeId, ChainPath};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::{Caller, Operator, Role, Viewer};
use crate::json_body::{OptionalJsonBody, RuleRequest};
use crate::path_tail::{PathTail, parse_path_parameter};
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use crate::rules;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    let document = ChainPathsOpenApi::openapi().merge_from(rules::openapi::build_document::<ChainPath>());
    OpenApiRouter::with_openapi(document).routes(routes!(list_chains)).route(
        "/api/v1/chains/{*path}",
        get(show_chain).put(dispatch_chain_put).delete(dispatch_chain_delete),
    )
}

/// The calls whose URL ends in a chain's path and an optional endpoint. They share one route.
#[derive(OpenApi)]
#[openapi(paths(
    show_chain,
    state_and_node_action::set_chain_state,
    state_and_node_action::set_chain_node_action
))]
struct ChainPathsOpenApi;

/// All chains.
#[utoipa::path(
    get,
    path = "/api/v1/chains",
    operation_id = "list_chains",
    tag = "chains",
    responses((status = 200, description = "The chains, by path", body = ChainList)),
)]
pub(crate) async fn list_chains(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ChainList>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    chain_bodies::list_chains(&app, &caller).await.map(Json)
}

/// One chain: its nodes, the number of orders at each, and its rules.
#[utoipa::path(
    get,
    path = "/api/v1/chains/{path}",
    operation_id = "show_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, not encoded, without its leading slash")),
    responses((status = 200, description = "The chain", body = ChainDetail)),
)]
pub(crate) async fn show_chain(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathTail(path): PathTail<ChainPath>,
    uri: Uri,
) -> Result<Json<ChainDetail>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    chain_bodies::find_chain(&app, &caller, &path).await.map(Json)
}

/// The endpoint of a chain that a URL names.
#[derive(Debug, PartialEq)]
enum ChainEndpoint {
    State(ChainPath),
    NodeAction(ChainPath, ChainNodeId),
    Rule(ChainPath, RuleKind),
}

impl ChainEndpoint {
    fn parse(text: &str) -> Result<Self, Problem> {
        let unknown_endpoint = || {
            Problem::not_found(
                "a chain is changed at `…/state`, `…/nodes/ID/action`, `…/pause` or `…/block` below its path",
            )
        };
        let (chain, last) = text.rsplit_once('/').ok_or_else(unknown_endpoint)?;
        match last {
            "state" => Ok(Self::State(parse_path_parameter(chain)?)),
            "pause" => Ok(Self::Rule(parse_path_parameter(chain)?, RuleKind::Pause)),
            "block" => Ok(Self::Rule(parse_path_parameter(chain)?, RuleKind::Block)),
            "action" => {
                let (chain, node) = chain.rsplit_once("/nodes/").ok_or_else(unknown_endpoint)?;
                Ok(Self::NodeAction(parse_path_parameter(chain)?, parse_path_parameter(node)?))
            }
            _ => Err(unknown_endpoint()),
        }
    }
}

async fn dispatch_chain_put(
    Operator(caller): Operator,
    State(app): State<App>,
    PathTail(text): PathTail<String>,
    request: Request,
) -> Result<Json<ChainDetail>, Problem> {
    match ChainEndpoint::parse(&text)? {
        ChainEndpoint::State(path) => {
            let OptionalJsonBody(members) = OptionalJsonBody::from_request(request, &app).await?;
            state_and_node_action::set_chain_state(&app, caller, path, members).await
        }
        ChainEndpoint::NodeAction(path, node) => {
            let OptionalJsonBody(members) = OptionalJsonBody::from_request(request, &app).await?;
            state_and_node_action::set_chain_node_action(&app, caller, path, node, members).await
        }
        ChainEndpoint::Rule(path, kind) => {
            let caller = require_rule_role(caller, kind)?;
            let request = RuleRequest::from_request(request, &app).await?;
            rules::set_rule(&app, &caller, kind, &path, request).await
        }
    }
}

async fn dispatch_chain_delete(
    Operator(caller): Operator,
    State(app): State<App>,
    PathTail(text): PathTail<String>,
    request: Request,
) -> Result<Json<ChainDetail>, Problem> {
    match ChainEndpoint::parse(&text)? {
        ChainEndpoint::Rule(path, kind) => {
            let caller = require_rule_role(caller, kind)?;
            let request = RuleRequest::from_request(request, &app).await?;
            rules::lift_rule(&app, &caller, kind, &path, request).await
        }
        ChainEndpoint::State(_) | ChainEndpoint::NodeAction(..) => Err(Problem::not_found(
            "only `…/pause` and `…/block` of a chain can be deleted; the others are set with PUT",
        )),
    }
}

/// Checks the role of a caller that sets or lifts a rule.
fn require_rule_role(caller: Caller, kind: RuleKind) -> Result<Caller, Problem> {
    match kind {
        RuleKind::Pause => Ok(caller),
        RuleKind::Block => caller.require_role(Role::Admin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_suffix_selects_the_endpoint() {
        let path = |text: &str| ChainPath::new(text).unwrap();
        let parsed = |text: &str| ChainEndpoint::parse(text).unwrap();
        assert_eq!(parsed("/a/b/state"), ChainEndpoint::State(path("/a/b")));
        assert_eq!(parsed("/a/state/state"), ChainEndpoint::State(path("/a/state")));
        assert_eq!(parsed("/a/nodes/x/pause"), ChainEndpoint::Rule(path("/a/nodes/x"), RuleKind::Pause));
        let node = ChainNodeId::new("action").unwrap();
        assert_eq!(
            parsed("/a/nodes/x/nodes/action/action"),
            ChainEndpoint::NodeAction(path("/a/nodes/x"), node)
        );
        for bad in
            ["/a", "/a/b", "/state", "/a//state", "/a/action", "/nodes/x/action", "/a/nodes//action", "/a/"]
        {
            assert!(ChainEndpoint::parse(bad).is_err(), "{bad}");
        }
    }
}
