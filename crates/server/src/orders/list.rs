//! Lists of orders.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{OrderBody, OrderList};
use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;
use pointsman_core::journal::PathFilter;

use crate::app::App;
use crate::auth::Viewer;
use crate::problem::Problem;
use crate::query::Query;

/// How many orders are shown unless the caller says so, and at most.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// How many stretches of the store are looked through for the orders of one tenant.
const MAX_PAGES: usize = 16;

/// Orders, by path. What is read without a tenant is read in one transaction.
#[utoipa::path(
    get,
    path = "/api/v1/orders",
    operation_id = "list_orders",
    tag = "orders",
    params(
        ("path" = Option<String>, Query, description = "`/` everything, `/a/` the tree below, `/a/*` the chains in it, \
            `/a/chain` that chain's orders, `/a/chain,1` one order"),
        ("tenant" = Option<String>, Query, description = "a tenant"),
        ("limit" = Option<u16>, Query, description = "1 to 1000, 100 if not given"),
        ("cursor" = Option<String>, Query, description = "the `next` of the answer before"),
    ),
    responses((status = 200, description = "The orders", body = OrderList)),
)]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<OrderList>, Problem> {
    let query = Query::of(&uri, &["path", "tenant", "limit", "cursor"])?;
    let path: PathFilter = query.parse("path")?.unwrap_or_default();
    let tenant = caller.tenant(query.parse("tenant")?)?;
    let limit = query.limit(DEFAULT_LIMIT, MAX_LIMIT)?;
    let after =
        query.read("cursor", |text| text.parse().map_err(|_| "a cursor is the `next` of an answer"))?;
    match tenant {
        None => Ok(Json(page(&app, &path, after, limit).await?)),
        Some(tenant) => Ok(Json(of_tenant(&app, &path, after, limit, &tenant).await?)),
    }
}

async fn page(
    app: &App,
    path: &PathFilter,
    after: Option<OrderKey>,
    limit: usize,
) -> Result<OrderList, Problem> {
    let page = app.engine.orders(path, after, limit).await?;
    Ok(OrderList {
        event_id: page.extent.head.get(),
        orders: page.orders.iter().map(OrderBody::from).collect(),
        next: page.next.map(|key| key.to_string()),
    })
}

/// Looks through everybody's orders. The stamp is that of the first stretch: what comes after it may be in the answer
/// already, and never the other way.
async fn of_tenant(
    app: &App,
    path: &PathFilter,
    mut after: Option<OrderKey>,
    limit: usize,
    tenant: &Tenant,
) -> Result<OrderList, Problem> {
    let mut orders: Vec<OrderBody> = Vec::new();
    let mut head = None;
    for _ in 0..MAX_PAGES {
        let page = app.engine.orders(path, after, MAX_LIMIT).await?;
        head.get_or_insert(page.extent.head);
        after = page.next;
        let mut own = page.orders.iter().filter(|view| view.order.tenant == *tenant);
        orders.extend(own.by_ref().take(limit - orders.len()).map(OrderBody::from));
        if orders.len() == limit && own.next().is_some() {
            // The rest of this stretch is read again by whoever reads on.
            let next = orders.last().map(|last| last.path.clone());
            return Ok(OrderList { event_id: head.unwrap_or_default().get(), orders, next });
        }
        if after.is_none() || orders.len() == limit {
            break;
        }
    }
    let next = after.map(|key| key.to_string());
    Ok(OrderList { event_id: head.unwrap_or_default().get(), orders, next })
}
