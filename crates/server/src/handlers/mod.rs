//! `/api/v1/handlers`: handlers, their queues, and pausing and blocking them.

mod adopt;
mod handler_bodies;
mod rule_target;

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{HandlerDetail, HandlerList};
use pointsman_core::HandlerName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::Viewer;
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use crate::rules;
use handler_bodies::{find_handler, keep_busiest_queues_in_detail};
use rule_target::HandlerRuleTarget;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_handlers))
        .routes(routes!(show_handler))
        .routes(routes!(adopt::adopt_tasks))
        .merge(rules::http_routes::<HandlerRuleTarget>())
}

/// All handlers.
#[utoipa::path(
    get,
    path = "/api/v1/handlers",
    operation_id = "list_handlers",
    tag = "handlers",
    responses((status = 200, description = "The handlers, each with its 100 busiest queues", body = HandlerList)),
)]
pub(crate) async fn list_handlers(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<HandlerList>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    handler_bodies::list_handlers(&app, &caller).await.map(Json)
}

/// One handler: how it runs, the event types routed to it, its queues and its rules.
#[utoipa::path(
    get,
    path = "/api/v1/handlers/{name}",
    operation_id = "show_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    responses((status = 200, description = "The handler, with its 1000 busiest queues", body = HandlerDetail)),
)]
pub(crate) async fn show_handler(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(name): PathSegment<HandlerName>,
    uri: Uri,
) -> Result<Json<HandlerDetail>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    find_handler(&app, &caller, &name).await.map(|found| Json(keep_busiest_queues_in_detail(found)))
}
