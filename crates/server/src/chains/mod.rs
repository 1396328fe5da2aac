//! `/api/v1/chains`: what chains there are, how many orders are where, stopping them, and what their nodes do.
//!
//! Chains have folders in their paths, and what is to be done to one follows its path in the address: `…/state`,
//! `…/nodes/ID/action`, `…/pause`, `…/block`.

mod overview;
mod rules;
mod steer;

use axum::Json;
use axum::extract::{FromRequest, Request, State};
use axum::routing::get;
use http::Uri;
use pointsman_api::{ChainDetail, ChainList};
use pointsman_core::RuleKind;
use pointsman_core::chain::{ChainPath, NodeId};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::action::{Hold, Members};
use crate::app::App;
use crate::auth::{Operator, Role, Viewer};
use crate::below::{Below, read};
use crate::problem::Problem;
use crate::query::Query;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(list))
        .route("/api/v1/chains/{*path}", get(one).put(put).delete(delete))
}

/// The calls whose addresses end in a chain's path, and what may follow it. They share one route.
#[derive(OpenApi)]
#[openapi(paths(
    one,
    steer::set_state,
    steer::set_action,
    rules::pause,
    rules::unpause,
    rules::block,
    rules::unblock
))]
struct Description;

/// All chains.
#[utoipa::path(
    get,
    path = "/api/v1/chains",
    operation_id = "list_chains",
    tag = "chains",
    responses((status = 200, description = "The chains, by path", body = ChainList)),
)]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ChainList>, Problem> {
    Query::of(&uri, &[])?;
    overview::list(&app, &caller).await.map(Json)
}

/// One chain: its nodes, how many orders are where, and what holds it.
#[utoipa::path(
    get,
    path = "/api/v1/chains/{path}",
    operation_id = "show_chain",
    tag = "chains",
    params(("path" = String, Path, description = "a chain's path, raw, without its leading slash")),
    responses((status = 200, description = "The chain", body = ChainDetail)),
)]
pub(crate) async fn one(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Below(path): Below<ChainPath>,
    uri: Uri,
) -> Result<Json<ChainDetail>, Problem> {
    Query::of(&uri, &[])?;
    overview::find(&app, &caller, &path).await.map(Json)
}

/// What an address asks to be done to a chain.
#[derive(Debug, PartialEq)]
enum Asked {
    State(ChainPath),
    Action(ChainPath, NodeId),
    Rule(ChainPath, RuleKind),
}

impl Asked {
    fn read(text: &str) -> Result<Self, Problem> {
        let nothing = || {
            Problem::not_found(
                "a chain is changed at `…/state`, `…/nodes/ID/action`, `…/pause` or `…/block` below its path",
            )
        };
        let (chain, last) = text.rsplit_once('/').ok_or_else(nothing)?;
        match last {
            "state" => Ok(Self::State(read(chain)?)),
            "pause" => Ok(Self::Rule(read(chain)?, RuleKind::Pause)),
            "block" => Ok(Self::Rule(read(chain)?, RuleKind::Block)),
            "action" => {
                let (chain, node) = chain.rsplit_once("/nodes/").ok_or_else(nothing)?;
                Ok(Self::Action(read(chain)?, read(node)?))
            }
            _ => Err(nothing()),
        }
    }
}

async fn put(
    Operator(caller): Operator,
    State(app): State<App>,
    Below(text): Below<String>,
    request: Request,
) -> Result<Json<ChainDetail>, Problem> {
    match Asked::read(&text)? {
        Asked::State(path) => {
            let Members(said) = Members::from_request(request, &app).await?;
            steer::set_state(&app, caller, path, said).await
        }
        Asked::Action(path, node) => {
            let Members(said) = Members::from_request(request, &app).await?;
            steer::set_action(&app, caller, path, node, said).await
        }
        Asked::Rule(path, RuleKind::Pause) => {
            rules::pause(&app, &caller, path, Hold::from_request(request, &app).await?).await
        }
        Asked::Rule(path, RuleKind::Block) => {
            let caller = caller.with(Role::Admin)?;
            rules::block(&app, &caller, path, Hold::from_request(request, &app).await?).await
        }
    }
}

async fn delete(
    Operator(caller): Operator,
    State(app): State<App>,
    Below(text): Below<String>,
    request: Request,
) -> Result<Json<ChainDetail>, Problem> {
    match Asked::read(&text)? {
        Asked::Rule(path, RuleKind::Pause) => {
            rules::unpause(&app, &caller, path, Hold::from_request(request, &app).await?).await
        }
        Asked::Rule(path, RuleKind::Block) => {
            let caller = caller.with(Role::Admin)?;
            rules::unblock(&app, &caller, path, Hold::from_request(request, &app).await?).await
        }
        Asked::State(_) | Asked::Action(..) => Err(Problem::not_found(
            "of a chain, `…/pause` and `…/block` can be deleted; the rest is set by PUT",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_address_says_what_is_to_be_done() {
        let path = |text: &str| ChainPath::new(text).unwrap();
        let asked = |text: &str| Asked::read(text).unwrap();
        assert_eq!(asked("/a/b/state"), Asked::State(path("/a/b")));
        assert_eq!(asked("/a/state/state"), Asked::State(path("/a/state")));
        assert_eq!(asked("/a/nodes/x/pause"), Asked::Rule(path("/a/nodes/x"), RuleKind::Pause));
        let node = NodeId::new("action").unwrap();
        assert_eq!(asked("/a/nodes/x/nodes/action/action"), Asked::Action(path("/a/nodes/x"), node));
        for bad in
            ["/a", "/a/b", "/state", "/a//state", "/a/action", "/nodes/x/action", "/a/nodes//action", "/a/"]
        {
            assert!(Asked::read(bad).is_err(), "{bad}");
        }
    }
}
