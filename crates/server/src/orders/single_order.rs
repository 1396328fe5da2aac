//! One order: showing, changing, suspending, resuming and removing it.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{ChangeOrderBody, OrderBody};
use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;
use pointsman_core::store::OrderCommand;

use super::requests::{ChangeOrderRequest, OrderChange};
use crate::app_state::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::json_body::{EmptyBodyWithQuery, OptionalJsonBodyWithQuery};
use crate::path_tail::{PathTail, parse_path_parameter};
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// One order with its node, value and task.
#[utoipa::path(
    get,
    path = "/api/v1/orders/{path}",
    operation_id = "show_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, not encoded, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses((status = 200, description = "The order", body = OrderBody)),
)]
pub(crate) async fn show_order(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathTail(key): PathTail<OrderKey>,
    uri: Uri,
) -> Result<Json<OrderBody>, Problem> {
    find_order(&app, &resolve_tenant_of_order_call(&caller, &uri)?, &key).await.map(Json)
}

/// Changes the value, the node or the planned time of an order.
#[utoipa::path(
    put,
    path = "/api/v1/orders/{path}",
    operation_id = "change_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, not encoded, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    request_body(content = ChangeOrderBody),
    responses(
        (status = 200, description = "The order after the change", body = OrderBody),
        (status = 409, description = "A step of the order is running",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "The chain has no such node",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn change_order(
    Operator(caller): Operator,
    State(app): State<App>,
    PathTail(key): PathTail<OrderKey>,
    uri: Uri,
    OptionalJsonBodyWithQuery(members): OptionalJsonBodyWithQuery<ChangeOrderRequest>,
) -> Result<Json<OrderBody>, Problem> {
    let tenant = resolve_tenant_of_order_call(&caller, &uri)?;
    let OrderChange { value, node, planned_at } = members.into_change()?;
    let changed = [
        node.as_ref().map(|node| format!("node {node}")),
        value.as_ref().map(|_| "value".to_owned()),
        planned_at.map(|at| format!("at {at}")),
    ];
    let detail = changed.into_iter().flatten().collect::<Vec<_>>().join(", ");
    apply_and_audit_command(
        &app,
        caller,
        (tenant, key),
        OrderCommand::Change { value, node, planned_at },
        detail,
    )
    .await
}

/// Removes an order, unless a step of it is running.
#[utoipa::path(
    delete,
    path = "/api/v1/orders/{path}",
    operation_id = "remove_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, not encoded, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses(
        (status = 200, description = "The removed order", body = OrderBody),
        (status = 409, description = "A step of the order is running",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn remove_order(
    Operator(caller): Operator,
    State(app): State<App>,
    PathTail(key): PathTail<OrderKey>,
    uri: Uri,
    _: EmptyBodyWithQuery,
) -> Result<Json<OrderBody>, Problem> {
    let tenant = resolve_tenant_of_order_call(&caller, &uri)?;
    apply_and_audit_command(&app, caller, (tenant, key), OrderCommand::Remove, String::new()).await
}

/// Dispatches a POST by the action after the order's path.
pub(crate) async fn dispatch_order_action(
    Operator(caller): Operator,
    State(app): State<App>,
    PathTail(text): PathTail<String>,
    uri: Uri,
    _: EmptyBodyWithQuery,
) -> Result<Json<OrderBody>, Problem> {
    let tenant = resolve_tenant_of_order_call(&caller, &uri)?;
    match text.rsplit_once('/') {
        Some((order, "suspend")) => suspend_order(&app, caller, (tenant, parse_path_parameter(order)?)).await,
        Some((order, "resume")) => resume_order(&app, caller, (tenant, parse_path_parameter(order)?)).await,
        _ => Err(Problem::not_found("POST to an order is `chain/path,id/suspend` or `…/resume`")),
    }
}

/// Suspends an order at its node. A running step finishes.
#[utoipa::path(
    post,
    path = "/api/v1/orders/{path}/suspend",
    operation_id = "suspend_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, not encoded, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses((status = 200, description = "The order after the change", body = OrderBody)),
)]
pub(crate) async fn suspend_order(
    app: &App,
    caller: Caller,
    order: OrderKeyWithTenant,
) -> Result<Json<OrderBody>, Problem> {
    apply_and_audit_command(app, caller, order, OrderCommand::Suspend, String::new()).await
}

/// Resumes a suspended order.
#[utoipa::path(
    post,
    path = "/api/v1/orders/{path}/resume",
    operation_id = "resume_order",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`chain/path,id`, not encoded, without its leading slash"),
        ("tenant" = Option<String>, Query, description = "tenant of the order; if not given, the token's tenant, or `default`"),
    ),
    responses((status = 200, description = "The order after the change", body = OrderBody)),
)]
pub(crate) async fn resume_order(
    app: &App,
    caller: Caller,
    order: OrderKeyWithTenant,
) -> Result<Json<OrderBody>, Problem> {
    apply_and_audit_command(app, caller, order, OrderCommand::Resume, String::new()).await
}

async fn apply_and_audit_command(
    app: &App,
    caller: Caller,
    (tenant, key): OrderKeyWithTenant,
    command: OrderCommand,
    detail: String,
) -> Result<Json<OrderBody>, Problem> {
    let before = find_order(app, &tenant, &key).await?;
    let inner = app.clone();
    app.run_change_to_completion(async move {
        inner.engine.apply_order_command(&tenant, &key, command.clone()).await??;
        inner
            .record_audit_entry(
                &caller,
                audit_action_of_command(&command),
                audit_target_of_order(&tenant, &key),
                detail,
            )
            .await;
        let after = match command {
            OrderCommand::Remove => None,
            OrderCommand::Suspend | OrderCommand::Resume | OrderCommand::Change { .. } => {
                find_order(&inner, &tenant, &key).await.ok()
            }
        };
        Ok(Json(after.unwrap_or_else(|| final_order_body(before, command))))
    })
    .await
}

fn audit_action_of_command(command: &OrderCommand) -> &'static str {
    match command {
        OrderCommand::Suspend => "suspend",
        OrderCommand::Resume => "resume",
        OrderCommand::Remove => "remove",
        OrderCommand::Change { .. } => "change",
    }
}

/// The state in which a command left an order that no longer exists: it was removed, or reached an end at once.
fn final_order_body(before: OrderBody, command: OrderCommand) -> OrderBody {
    match command {
        OrderCommand::Suspend | OrderCommand::Remove => before,
        OrderCommand::Resume => OrderBody { suspended: false, ..before },
        OrderCommand::Change { value, node, planned_at: at } => OrderBody {
            task: None,
            value: value.unwrap_or_else(|| before.value.clone()),
            node: node.map_or_else(|| before.node.clone(), |node| node.to_string()),
            planned_at: at.map_or_else(|| before.planned_at.clone(), |at| at.to_string()),
            ..before
        },
    }
}

/// An order of a tenant.
type OrderKeyWithTenant = (Tenant, OrderKey);

/// The tenant of a call about one order: `tenant=` if given, else the token's, else `default`.
fn resolve_tenant_of_order_call(caller: &Caller, uri: &Uri) -> Result<Tenant, Problem> {
    let query = RequestQuery::from_uri(uri, &["tenant"])?;
    Ok(caller.resolve_requested_tenant(query.parse_parameter("tenant")?)?.unwrap_or_default())
}

async fn find_order(app: &App, tenant: &Tenant, key: &OrderKey) -> Result<OrderBody, Problem> {
    let found = app.engine.find_order(tenant, key).await?;
    let (view, journal_range) =
        found.ok_or_else(|| Problem::not_found(no_such_order_message(tenant, key)))?;
    Ok(OrderBody { newest_event_id: Some(journal_range.newest_event_id.get()), ..OrderBody::from(&view) })
}

/// The message that a tenant has no such order.
pub(crate) fn no_such_order_message(tenant: &Tenant, key: &OrderKey) -> String {
    match tenant.is_default() {
        true => format!("there is no order {key}; name its tenant with `tenant=` if it is not `default`'s"),
        false => format!("there is no order {key} of the tenant {tenant}"),
    }
}

/// The name of an order in the audit.
pub(super) fn audit_target_of_order(tenant: &Tenant, key: &OrderKey) -> String {
    match tenant.is_default() {
        true => format!("order {key}"),
        false => format!("order {key} of tenant {tenant}"),
    }
}
