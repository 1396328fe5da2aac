//! `GET /api/v1/orders`: lists orders by path, a page at a time.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{OrderBody, OrderList};
use pointsman_core::journal::PathFilter;

use crate::app_state::App;
use crate::auth::Viewer;
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// Default number of orders in a response.
const DEFAULT_LIMIT: usize = 100;
/// Maximum number of orders in a response.
const MAX_LIMIT: usize = 1000;

/// The orders of a path, read in one transaction.
#[utoipa::path(
    get,
    path = "/api/v1/orders",
    operation_id = "list_orders",
    tag = "orders",
    params(
        ("path" = Option<String>, Query, description = "`/` everything, `/a/` the tree below, `/a/*` the chains in it, \
            `/a/chain` that chain's orders, `/a/chain,1` one order"),
        ("tenant" = Option<String>, Query, description = "only this tenant's orders; all that the token may see if not given"),
        ("limit" = Option<u16>, Query, description = "1 to 1000, 100 if not given"),
        ("cursor" = Option<String>, Query, description = "the `next` of the previous response"),
    ),
    responses((status = 200, description = "The orders", body = OrderList)),
)]
pub(crate) async fn list_orders(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<OrderList>, Problem> {
    let query = RequestQuery::from_uri(&uri, &["path", "tenant", "limit", "cursor"])?;
    let path: PathFilter = query.parse_parameter("path")?.unwrap_or_default();
    let tenant = caller.resolve_requested_tenant(query.parse_parameter("tenant")?)?;
    let limit = query.parse_limit(DEFAULT_LIMIT, MAX_LIMIT)?;
    let after = query.parse_parameter_with("cursor", |text| {
        text.parse().map_err(|_| "a cursor is the `next` of a response")
    })?;
    let page = app.engine.list_orders(&path, tenant.as_ref(), after, limit).await?;
    Ok(Json(OrderList {
        newest_event_id: page.journal_range.newest_event_id.get(),
        orders: page.orders.iter().map(OrderBody::from).collect(),
        next: page.next_cursor.map(|key| key.to_string()),
    }))
}
