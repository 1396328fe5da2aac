//! `/jobscheduler/master/api/order`: orders and their events in the format of the JobScheduler API.
//!
//! ```text
//!  order_query             which orders are selected, and the parameter `return`
//!  order_overview          OrderOverview: the state of the orders, as one snapshot
//!  order_statistics        OrderStatistics; OrderStatisticsChanged, which is computed on request
//!  order_statistics_cache  one count of orders, shared by concurrent requests
//!  response_schema         the possible responses, for the OpenAPI document
//! ```
//!
//! A GET has the path in its URL, a POST has it in its body; otherwise they are the same. Events are read by the code
//! of `/api/v1/events`, restricted to the engine's own. A token bound to a tenant gets that tenant's orders, the events
//! of these and of its tasks, and statistics of these orders only.

mod order_overview;
mod order_query;
mod order_statistics;
mod order_statistics_cache;
mod response_schema;

use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::Uri;
use pointsman_core::event_json_parser::{JsonError, parse_string};
use pointsman_core::journal::EventFilter;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::{Caller, Viewer};
use crate::events::EventQuery;
use crate::events::event_seq_response::{self, TimeoutAndLimit};
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use crate::{json_body, percent_decoding};
use order_overview::respond_with_overview;
use order_query::{OrderSelection, ReturnKind};
use order_statistics::StatisticsQuery;
pub(crate) use order_statistics_cache::OrderStatisticsCache;
use response_schema::OrderAnswer;

/// Base path of these calls.
const BASE_PATH: &str = "/jobscheduler/master/api/order";

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_all_orders, query_orders))
        .routes(routes!(get_orders))
        .route(&format!("{BASE_PATH}/"), get(get_all_orders).post(query_orders))
        .route(&format!("{BASE_PATH}/{{*path}}"), axum::routing::post(reject_post_with_path))
}

/// The state, the events or the statistics of all orders.
#[utoipa::path(
    get,
    path = "/jobscheduler/master/api/order",
    operation_id = "read_all_orders",
    tag = "orders",
    params(
        ("return" = Option<String>, Query, description = "`OrderOverview` (the default), `OrderStatistics`, \
            `OrderStatisticsChanged`, or `Event` and the types below it, separated by commas"),
        ("after" = Option<u64>, Query, description = "an EventId; required for events, unless `limit` is negative"),
        ("timeout" = Option<String>, Query, description = "how long to wait for events: `60`, `60s`, `1h2m3s` or ISO 8601"),
        ("limit" = Option<i64>, Query, description = "maximum number of events; a negative one reads backwards"),
        ("tenant" = Option<String>, Query, description = "only this tenant's; where the path names one order, `default` if \
            neither this nor the token names one"),
    ),
    responses((status = 200, description = "A snapshot of the orders, their statistics, or an EventSeq", body = OrderAnswer)),
)]
pub(crate) async fn get_all_orders(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    respond_by_return_kind(app, caller, &uri, OrderSelection::all()).await
}

/// The state, the events or the statistics of the orders of a folder or chain, or of one order.
#[utoipa::path(
    get,
    path = "/jobscheduler/master/api/order/{*path}",
    operation_id = "read_orders",
    tag = "orders",
    params(
        ("path" = String, Path, description = "`folder/` all below it, `folder/*` its chains, `folder/chain` \
            the chain's orders, `folder/chain,id` one order"),
        ("return" = Option<String>, Query, description = "as for all orders"),
        ("after" = Option<u64>, Query, description = "as for all orders"),
        ("timeout" = Option<String>, Query, description = "as for all orders"),
        ("limit" = Option<i64>, Query, description = "as for all orders"),
        ("tenant" = Option<String>, Query, description = "as for all orders"),
    ),
    responses((status = 200, description = "As for all orders; where the path names one order, its overview alone",
        body = OrderAnswer)),
)]
pub(crate) async fn get_orders(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let selection = OrderSelection::parse(&path_from_uri(&uri))
        .map_err(|bad| Problem::malformed(bad).with_parameter("path"))?;
    respond_by_return_kind(app, caller, &uri, selection).await
}

/// The same as a GET, with the path in the body.
#[utoipa::path(
    post,
    path = "/jobscheduler/master/api/order",
    operation_id = "query_orders",
    tag = "orders",
    params(
        ("return" = Option<String>, Query, description = "as for all orders"),
        ("after" = Option<u64>, Query, description = "as for all orders"),
        ("timeout" = Option<String>, Query, description = "as for all orders"),
        ("limit" = Option<i64>, Query, description = "as for all orders"),
        ("tenant" = Option<String>, Query, description = "as for all orders"),
    ),
    request_body(content = PathQuery, description = "`{}` means all orders"),
    responses((status = 200, description = "As for a GET with this path", body = OrderAnswer)),
)]
pub(crate) async fn query_orders(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
    PostedOrderSelection(selection): PostedOrderSelection,
) -> Result<Response, Problem> {
    respond_by_return_kind(app, caller, &uri, selection).await
}

/// Rejects a POST with a path in its URL, because its body may name another path.
async fn reject_post_with_path(_: Viewer) -> Problem {
    let detail = format!("with POST the path is in the body: POST to {BASE_PATH}, or use GET");
    Problem::malformed(detail).with_parameter("path")
}

/// The orders that a POST selects.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a JSON object with a `path`")]
pub(crate) struct PathQuery {
    #[schema(value_type = Option<String>, example = "/aFolder/")]
    path: Option<Box<RawValue>>,
}

pub(crate) struct PostedOrderSelection(OrderSelection);

impl FromRequest<App> for PostedOrderSelection {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let PathQuery { path } = json_body::read_json_body(request, app).await?;
        let Some(path) = path else { return Ok(Self(OrderSelection::all())) };
        let selection = OrderSelection::parse(&parse_string("/path", &path)?)
            .map_err(|bad| JsonError::new("/path", bad))?;
        Ok(Self(selection))
    }
}

/// Decodes the path after the base path of a URL.
fn path_from_uri(uri: &Uri) -> String {
    // An empty path is rejected when it is parsed.
    uri.path().strip_prefix(BASE_PATH).and_then(percent_decoding::decode_percent_encoded).unwrap_or_default()
}

async fn respond_by_return_kind(
    app: App,
    caller: Caller,
    uri: &Uri,
    selection: OrderSelection,
) -> Result<Response, Problem> {
    let allowed = [&["return", "after", "tenant"], TimeoutAndLimit::PARAMETERS.as_slice()].concat();
    let query = RequestQuery::from_uri(uri, &allowed)?;
    let tenant = caller.resolve_requested_tenant(query.parse_parameter("tenant")?)?;
    match query.parse_parameter_with("return", ReturnKind::parse)?.unwrap_or(ReturnKind::Overview) {
        ReturnKind::Overview => {
            reject_parameters(&query, &["after", "timeout", "limit"], "OrderOverview")?;
            respond_with_overview(&app, &caller, tenant, &selection).await
        }
        ReturnKind::Statistics => {
            reject_parameters(&query, &["after", "timeout", "limit"], "OrderStatistics")?;
            Ok(StatisticsQuery::new(app, caller, tenant, selection).read_current().await?.into_response())
        }
        ReturnKind::NextStatisticsChange => {
            reject_parameters(&query, &["limit"], "OrderStatisticsChanged")?;
            let after = event_seq_response::require_cursor(query.parse_parameter("after")?)?;
            let timeout = event_seq_response::parse_poll_timeout(&query)?;
            let _poll_permit =
                (!timeout.is_zero()).then(|| app.stream_limiter.try_acquire_permit(&caller)).transpose()?;
            StatisticsQuery::new(app, caller, tenant, selection).wait_for_change(after, timeout).await
        }
        ReturnKind::Events(event_types) => {
            let names_types = !event_types.is_empty();
            let filter = EventFilter {
                event_types,
                path: selection.path_filter,
                key: None,
                tenant,
                engine_events_only: true,
            };
            let event_query =
                EventQuery { filter, after: query.parse_parameter("after")?, has_type_filter: names_types };
            event_seq_response::respond_with_event_seq(
                &app,
                &caller,
                event_query,
                &TimeoutAndLimit::from_query(&query)?,
            )
            .await
        }
    }
}

fn reject_parameters(query: &RequestQuery, names: &[&str], return_value: &str) -> Result<(), Problem> {
    match names.iter().find(|name| query.get(name).is_some()) {
        Some(name) => {
            Err(Problem::malformed(format!("`return={return_value}` takes no `{name}`"))
                .with_parameter(*name))
        }
        None => Ok(()),
    }
}
