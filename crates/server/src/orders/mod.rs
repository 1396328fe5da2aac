//! `/api/v1/orders`: listing, adding and controlling orders.
//!
//! ```text
//!  list          orders by path, a page in one transaction
//!  add           adds one order or several
//!  single_order  shows, changes, suspends, resumes and removes an order
//!  requests      strict parsing of bodies
//!  refusals      the problem response of each refusal
//! ```

mod add;
mod list;
mod refusals;
mod requests;
mod single_order;

pub(crate) use single_order::no_such_order_message;

use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    let order_methods = get(single_order::show_order)
        .put(single_order::change_order)
        .delete(single_order::remove_order)
        .post(single_order::dispatch_order_action);
    OpenApiRouter::with_openapi(OrderPathsOpenApi::openapi())
        .routes(routes!(list::list_orders, add::add_orders))
        .route("/api/v1/orders/{*path}", order_methods)
}

/// The calls whose URL ends in an order's path and an optional action. They share one route.
#[derive(OpenApi)]
#[openapi(paths(
    single_order::show_order,
    single_order::change_order,
    single_order::remove_order,
    single_order::suspend_order,
    single_order::resume_order
))]
struct OrderPathsOpenApi;
