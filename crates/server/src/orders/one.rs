//! One order, and what people do to it.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{ChangeOrderBody, OrderBody};
use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;
use pointsman_core::store::OrderCommand;

use super::members::{Change, Changed};
use crate::action::{BodyMembers, NoBody};
use crate::app::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::below::{Below, read};
use crate::problem::Problem;
use crate::query::Query;

/// One order: where it stands, its value and its task.
#[utoipa::path(
    get,
    path = "/api/v1/orders/{path}",
    operation_id = "show_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, raw, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses((status = 200, description = "The order", body = OrderBody)),
)]
pub(crate) async fn one(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Below(key): Below<OrderKey>,
    uri: Uri,
) -> Result<Json<OrderBody>, Problem> {
    find(&app, &tenant_of(&caller, &uri)?, &key).await.map(Json)
}

/// Gives an order another value, puts it at another node, or plans it for another time.
#[utoipa::path(
    put,
    path = "/api/v1/orders/{path}",
    operation_id = "change_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, raw, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    request_body(content = ChangeOrderBody),
    responses(
        (status = 200, description = "The order as it stands now", body = OrderBody),
        (status = 409, description = "A step of it is running",
            body = pointsman_api::Problem, content_type = "application/problem+json"),
        (status = 422, description = "The chain has no such node",
            body = pointsman_api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn change(
    Operator(caller): Operator,
    State(app): State<App>,
    Below(key): Below<OrderKey>,
    uri: Uri,
    BodyMembers(said): BodyMembers<Changed>,
) -> Result<Json<OrderBody>, Problem> {
    let tenant = tenant_of(&caller, &uri)?;
    let Change { value, node, at } = said.into_change()?;
    let said = [
        node.as_ref().map(|node| format!("node {node}")),
        value.as_ref().map(|_| "value".to_owned()),
        at.map(|at| format!("at {at}")),
    ];
    let detail = said.into_iter().flatten().collect::<Vec<_>>().join(", ");
    steer(&app, caller, (tenant, key), OrderCommand::Change { value, node, at }, detail).await
}

/// Removes an order. Not while a step of it runs.
#[utoipa::path(
    delete,
    path = "/api/v1/orders/{path}",
    operation_id = "remove_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, raw, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses(
        (status = 200, description = "The order as it was", body = OrderBody),
        (status = 409, description = "A step of it is running",
            body = pointsman_api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn remove(
    Operator(caller): Operator,
    State(app): State<App>,
    Below(key): Below<OrderKey>,
    uri: Uri,
    _: NoBody,
) -> Result<Json<OrderBody>, Problem> {
    let tenant = tenant_of(&caller, &uri)?;
    steer(&app, caller, (tenant, key), OrderCommand::Remove, String::new()).await
}

/// What follows the order's path in the address says what is to be done.
pub(crate) async fn act(
    Operator(caller): Operator,
    State(app): State<App>,
    Below(text): Below<String>,
    uri: Uri,
    _: NoBody,
) -> Result<Json<OrderBody>, Problem> {
    let tenant = tenant_of(&caller, &uri)?;
    match text.rsplit_once('/') {
        Some((order, "suspend")) => suspend(&app, caller, (tenant, read(order)?)).await,
        Some((order, "resume")) => resume(&app, caller, (tenant, read(order)?)).await,
        _ => Err(Problem::not_found("an order is posted to as `chain/path,id/suspend` or `…/resume`")),
    }
}

/// Keeps an order where it stands. A step that runs is let end.
#[utoipa::path(
    post,
    path = "/api/v1/orders/{path}/suspend",
    operation_id = "suspend_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, raw, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses((status = 200, description = "The order as it stands now", body = OrderBody)),
)]
pub(crate) async fn suspend(
    app: &App,
    caller: Caller,
    order: TenantOrder,
) -> Result<Json<OrderBody>, Problem> {
    steer(app, caller, order, OrderCommand::Suspend, String::new()).await
}

/// Lets a suspended order go on.
#[utoipa::path(
    post,
    path = "/api/v1/orders/{path}/resume",
    operation_id = "resume_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, raw, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses((status = 200, description = "The order as it stands now", body = OrderBody)),
)]
pub(crate) async fn resume(
    app: &App,
    caller: Caller,
    order: TenantOrder,
) -> Result<Json<OrderBody>, Problem> {
    steer(app, caller, order, OrderCommand::Resume, String::new()).await
}

async fn steer(
    app: &App,
    caller: Caller,
    (tenant, key): TenantOrder,
    command: OrderCommand,
    detail: String,
) -> Result<Json<OrderBody>, Problem> {
    let before = find(app, &tenant, &key).await?;
    let inner = app.clone();
    app.deed(async move {
        inner.engine.steer_order(&tenant, &key, command.clone()).await??;
        inner.note(&caller, word(&command), audited(&tenant, &key), detail).await;
        let after = match command {
            OrderCommand::Remove => None,
            OrderCommand::Suspend | OrderCommand::Resume | OrderCommand::Change { .. } => {
                find(&inner, &tenant, &key).await.ok()
            }
        };
        Ok(Json(after.unwrap_or_else(|| left(before, command))))
    })
    .await
}

fn word(command: &OrderCommand) -> &'static str {
    match command {
        OrderCommand::Suspend => "suspend",
        OrderCommand::Resume => "resume",
        OrderCommand::Remove => "remove",
        OrderCommand::Change { .. } => "change",
    }
}

/// How a command left an order that is gone since: removed, or arrived at an end at once.
fn left(before: OrderBody, command: OrderCommand) -> OrderBody {
    match command {
        OrderCommand::Suspend | OrderCommand::Remove => before,
        OrderCommand::Resume => OrderBody { suspended: false, ..before },
        OrderCommand::Change { value, node, at } => OrderBody {
            task: None,
            value: value.unwrap_or_else(|| before.value.clone()),
            node: node.map_or_else(|| before.node.clone(), |node| node.to_string()),
            planned_at: at.map_or_else(|| before.planned_at.clone(), |at| at.to_string()),
            ..before
        },
    }
}

/// Whose order and which.
type TenantOrder = (Tenant, OrderKey);

/// The tenant that a call about one order is for: `tenant=` if given, else the token's own, else `default`.
fn tenant_of(caller: &Caller, uri: &Uri) -> Result<Tenant, Problem> {
    let query = Query::of(uri, &["tenant"])?;
    Ok(caller.tenant(query.parse("tenant")?)?.unwrap_or_default())
}

async fn find(app: &App, tenant: &Tenant, key: &OrderKey) -> Result<OrderBody, Problem> {
    let found = app.engine.order(tenant, key).await?;
    let (view, extent) = found.ok_or_else(|| Problem::not_found(no_such_order(tenant, key)))?;
    Ok(OrderBody { event_id: Some(extent.head.get()), ..OrderBody::from(&view) })
}

/// Says that a tenant has no such order.
pub(crate) fn no_such_order(tenant: &Tenant, key: &OrderKey) -> String {
    match tenant.is_default() {
        true => format!("there is no order {key}; name its tenant with `tenant=` if it is not `default`'s"),
        false => format!("there is no order {key} of the tenant {tenant}"),
    }
}

/// An order as the audit log names it.
pub(super) fn audited(tenant: &Tenant, key: &OrderKey) -> String {
    match tenant.is_default() {
        true => format!("order {key}"),
        false => format!("order {key} of tenant {tenant}"),
    }
}
