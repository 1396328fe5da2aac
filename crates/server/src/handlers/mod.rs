//! `/api/v1/handlers`: what handlers there are, what waits for them, and holding them.

mod overview;
mod rules;

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{Adopted, HandlerDetail, HandlerList};
use pointsman_core::HandlerName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::action::Nothing;
use crate::app::App;
use crate::auth::{Operator, Viewer};
use crate::problem::Problem;
use crate::query::Query;
use crate::segment::Segment;
use overview::{Overview, find, overview};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(rules::pause, rules::unpause))
        .routes(routes!(rules::block, rules::unblock))
        .routes(routes!(adopt))
}

/// All handlers.
#[utoipa::path(
    get,
    path = "/api/v1/handlers",
    operation_id = "list_handlers",
    tag = "handlers",
    responses((status = 200, description = "The handlers", body = HandlerList)),
)]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<HandlerList>, Problem> {
    Query::of(&uri, &[])?;
    let Overview { event_id, handlers } = overview(&app, &caller).await?;
    Ok(Json(HandlerList { event_id, handlers: handlers.into_values().collect() }))
}

/// One handler: how it runs, what routes to it, what waits for it and what holds it.
#[utoipa::path(
    get,
    path = "/api/v1/handlers/{name}",
    operation_id = "show_handler",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    responses((status = 200, description = "The handler", body = HandlerDetail)),
)]
pub(crate) async fn one(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    uri: Uri,
) -> Result<Json<HandlerDetail>, Problem> {
    Query::of(&uri, &[])?;
    find(&app, &caller, &name).await.map(Json)
}

/// Takes up the tasks of a handler that was gone and is back.
#[utoipa::path(
    post,
    path = "/api/v1/handlers/{name}/adopt",
    operation_id = "adopt_tasks",
    tag = "handlers",
    params(("name" = String, Path, description = "a handler's name")),
    responses((status = 200, description = "How many", body = Adopted)),
)]
pub(crate) async fn adopt(
    Operator(caller): Operator,
    State(app): State<App>,
    Segment(name): Segment<HandlerName>,
    _: Nothing,
) -> Result<Json<Adopted>, Problem> {
    if caller.tenant.is_some() {
        return Err(Problem::forbidden(
            "adopting reaches every tenant; this needs a token that is bound to none",
        ));
    }
    if !find(&app, &caller, &name).await?.handler.defined {
        return Err(Problem::conflict(format!(
            "the handler {name} is not defined, so nobody could run its tasks"
        )));
    }
    let adopted = app.engine.adopt(&name).await?;
    Ok(Json(Adopted { adopted }))
}
