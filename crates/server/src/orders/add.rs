//! `POST /api/v1/orders`: parses and adds orders.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, Uri, header};
use pointsman_api::{AddOrdersResponse, AddedOrderBody, NewOrderBody};
use pointsman_core::event_json_parser::JsonError;
use pointsman_core::store::{
    AddedOrder, ChainView, IdempotencyKey, NewOrder, OrderBatch, OrderBatchError, OrderBatchReceipt,
    OrderError,
};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{Tenant, Timestamp};
use serde_json::value::RawValue;
use utoipa::openapi::{ArrayBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::requests;
use super::single_order::audit_target_of_order;
use crate::app_state::App;
use crate::auth::{Caller, Operator};
use crate::idempotency;
use crate::media_type;
use crate::problem::Problem;
use crate::request_body::ReceivedBody;
use crate::request_query::RequestQuery;

/// Maximum number of orders in a request.
const MAX_ORDERS_PER_REQUEST: usize = 1000;

/// Adds one order, or an array of 1 to 1,000 of them (all or nothing).
#[utoipa::path(
    post,
    path = "/api/v1/orders",
    operation_id = "add_orders",
    tag = "orders",
    params(
        ("tenant" = Option<String>, Query,
            description = "tenant of orders that name none; if not given, the token's tenant, or `default`"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 255 printable ASCII characters; a repeat with the same content gets the same response"),
    ),
    request_body(content = NewOrders, description = "an order, or an array of them",
        example = json!({"path": "/publish/article,117", "value": {"title": "Hello"}})),
    responses(
        (status = 201, description = "The orders were added; `Location` is the URL of a single one",
            body = AddOrdersResponse),
        (status = 200, description = "A repeat of an earlier request with the same idempotency key and content; its response",
            body = AddOrdersResponse),
        (status = 404, description = "There is no such chain",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "An order with this id is running, or has ended less than a day ago; the request names an id twice; or the \
            idempotency key was used with other content",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "The chain has no such node",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn add_orders(
    Operator(caller): Operator,
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
    body: ReceivedBody,
) -> Result<Response, Problem> {
    let query = RequestQuery::from_uri(&uri, &["tenant"])?;
    let tenant = caller.resolve_requested_tenant(query.parse_parameter("tenant")?)?.unwrap_or_default();
    media_type::require_json_media_type(&headers)?;
    let request = NewOrdersRequest::parse(media_type::decode_body_utf8(&body.bytes)?, &tenant, app.now())?;
    if let Some(order) = request.orders.iter().find(|order| !caller.can_see_tenant(&order.tenant)) {
        return Err(caller.tenant_forbidden_problem(&order.tenant));
    }
    // Idempotency keys belong to a tenant: that of the first order, which a repeat names as well.
    let key_tenant = request.orders.first().map_or_else(|| tenant.clone(), |first| first.tenant.clone());
    let operation = ["add orders", tenant.as_str()];
    let idempotency = idempotency::idempotency_key_for_tenant(&headers, key_tenant, &operation, &body.bytes)?;
    let inner = app.clone();
    let receipt = app
        .run_change_to_completion(
            async move { add_and_audit_orders(&inner, &caller, request, idempotency).await },
        )
        .await?;
    Ok(added_orders_response(&receipt))
}

/// Schema of the body for the OpenAPI document: one order, or an array of them.
struct NewOrders;

impl PartialSchema for NewOrders {
    fn schema() -> RefOr<Schema> {
        let one = || Ref::from_schema_name(NewOrderBody::name());
        let array =
            ArrayBuilder::new().items(one()).min_items(Some(1)).max_items(Some(MAX_ORDERS_PER_REQUEST));
        Schema::from(OneOfBuilder::new().item(one()).item(array).build()).into()
    }
}

impl ToSchema for NewOrders {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((NewOrderBody::name().into_owned(), NewOrderBody::schema()));
        NewOrderBody::schemas(schemas);
    }
}

/// The orders of a request body.
struct NewOrdersRequest {
    orders: Vec<NewOrder>,
    /// Whether the body is an array.
    is_array: bool,
}

impl NewOrdersRequest {
    fn parse(text: &str, tenant: &Tenant, now: Timestamp) -> Result<Self, Problem> {
        let order = |raw: &RawValue, at: &str| {
            let members =
                requests::NewOrderRequest::parse(raw.get()).map_err(|fault| fault.with_pointer_prefix(at))?;
            members.into_order(now, tenant).map_err(|problem| problem.with_pointer_prefix(at))
        };
        let is_array = text.trim_start().starts_with('[');
        if !is_array {
            let raw: &RawValue = serde_json::from_str(text).map_err(media_type::malformed_json_problem)?;
            return Ok(Self { orders: vec![order(raw, "")?], is_array });
        }
        let list: Vec<&RawValue> = serde_json::from_str(text).map_err(media_type::malformed_json_problem)?;
        if list.is_empty() || list.len() > MAX_ORDERS_PER_REQUEST {
            let detail =
                format!("an array has 1 to {MAX_ORDERS_PER_REQUEST} orders, this one has {}", list.len());
            return Err(JsonError::new("", detail).into());
        }
        let orders = list.into_iter().enumerate().map(|(index, raw)| order(raw, &format!("/{index}")));
        Ok(Self { orders: orders.collect::<Result<_, _>>()?, is_array })
    }
}

async fn add_and_audit_orders(
    app: &App,
    caller: &Caller,
    request: NewOrdersRequest,
    idempotency: Option<IdempotencyKey>,
) -> Result<OrderBatchReceipt, Problem> {
    let NewOrdersRequest { orders, is_array } = request;
    let duplicates = find_duplicate_orders(&orders);
    match app
        .engine
        .add_orders(OrderBatch { orders, reuse_ended_ids: false, idempotency_key: idempotency })
        .await?
    {
        Ok(receipt) => {
            if !receipt.repeated {
                audit_added_orders(app, caller, &receipt.orders).await;
            }
            Ok(receipt)
        }
        Err(OrderBatchError::OrderRefused(index, OrderError::AlreadyExists(chain, id)))
            if duplicates.contains_key(&index) =>
        {
            let (first, again) = (format!("/{}/path", duplicates[&index]), format!("/{index}/path"));
            let detail = format!(
                "the request names the order {chain},{id} twice, at {first} and {again}; nothing was added"
            );
            Err(Problem::conflict(detail).with_pointer(again))
        }
        Err(OrderBatchError::OrderRefused(index, refused)) => {
            let at = if is_array { format!("/{index}") } else { String::new() };
            let (chains, _) = app.engine.list_chains().await?;
            Err(refusal_to_problem(refused, &at, &chains))
        }
        Err(OrderBatchError::Idempotency(conflict)) => Err(conflict.into()),
    }
}

/// Finds the orders of a request that have the id of an earlier order of the request. Maps their indexes to those of
/// the earlier orders.
fn find_duplicate_orders(orders: &[NewOrder]) -> HashMap<usize, usize> {
    let (mut first, mut duplicates) = (HashMap::new(), HashMap::new());
    for (index, order) in orders.iter().enumerate() {
        let Some(id) = &order.id else { continue };
        match first.entry((&order.tenant, &order.chain, id)) {
            Entry::Vacant(entry) => drop(entry.insert(index)),
            Entry::Occupied(earlier) => drop(duplicates.insert(index, *earlier.get())),
        }
    }
    duplicates
}

/// Records the orders of a request in one audit entry.
async fn audit_added_orders(app: &App, caller: &Caller, added: &[AddedOrder]) {
    match added {
        [one] => {
            app.record_audit_entry(caller, "add", audit_target_of_order(&one.tenant, &one.order), "").await
        }
        several => {
            let paths: Vec<_> = several.iter().map(|added| added.order.to_string()).collect();
            app.record_audit_entry(caller, "add", format!("{} orders", several.len()), paths.join(" ")).await;
        }
    }
}

/// Converts the refusal of an order to a problem that points at the member at fault.
fn refusal_to_problem(refused: OrderError, at: &str, chains: &[ChainView]) -> Problem {
    match &refused {
        OrderError::NoSuchChain(path) => {
            let hint = did_you_mean_suffix(path.as_str(), chains.iter().map(|view| view.chain.path.as_str()));
            Problem::not_found(format!("{refused}{hint}")).with_pointer(format!("{at}/path"))
        }
        OrderError::NoSuchNode(path, node) => {
            let view = chains.iter().find(|view| view.chain.path == *path);
            let nodes = view.into_iter().flat_map(|view| &view.chain.nodes);
            let hint = did_you_mean_suffix(node.as_str(), nodes.map(|node| node.id.as_str()));
            Problem::unprocessable(format!("{refused}{hint}")).with_pointer(format!("{at}/node"))
        }
        OrderError::ReservedId(_)
        | OrderError::AlreadyExists(..)
        | OrderError::IdOfEndedOrder(_)
        | OrderError::NoSuchOrder(_)
        | OrderError::StepRunning(_) => Problem::from(refused).with_pointer(format!("{at}/path")),
    }
}

fn added_orders_response(receipt: &OrderBatchReceipt) -> Response {
    let OrderBatchReceipt { orders: added, repeated } = receipt;
    let order = |added: &AddedOrder| AddedOrderBody {
        path: added.order.to_string(),
        chain: added.order.chain.to_string(),
        id: added.order.id.to_string(),
        event_id: added.event.get(),
    };
    let orders: Vec<_> = added.iter().map(order).collect();
    let last_event_id = orders.last().map_or(0, |last| last.event_id);
    let location = match added.as_slice() {
        [one] => Some([(header::LOCATION, order_url(one))]),
        _ => None,
    };
    let body = Json(AddOrdersResponse { last_event_id, orders });
    let status = if *repeated { StatusCode::OK } else { StatusCode::CREATED };
    match location {
        Some(location) => (status, location, body).into_response(),
        None => (status, body).into_response(),
    }
}

/// The URL of an order. It names a tenant other than `default`, so that it works for any token.
fn order_url(added: &AddedOrder) -> String {
    match added.tenant.is_default() {
        true => format!("/api/v1/orders{}", added.order),
        false => format!("/api/v1/orders{}?tenant={}", added.order, added.tenant),
    }
}
