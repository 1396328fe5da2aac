//! `/api/v1/orders`: what travels the chains, adding to it and steering it.
//!
//! ```text
//!  list     orders by path, a page in one transaction
//!  add      one order, or several
//!  one      an order, and what people do to it
//!  members  what bodies say of an order, read strictly
//!  refused  how each refusal counts
//! ```

mod add;
mod list;
mod members;
mod one;
mod refused;

pub(crate) use one::no_such_order;

use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    let below = get(one::one).put(one::change).delete(one::remove).post(one::act);
    OpenApiRouter::with_openapi(Below::openapi())
        .routes(routes!(list::list, add::add))
        .route("/api/v1/orders/{*path}", below)
}

/// The calls whose addresses end in an order's path, and what may follow it. They share one route.
#[derive(OpenApi)]
#[openapi(paths(one::one, one::change, one::remove, one::suspend, one::resume))]
struct Below;
