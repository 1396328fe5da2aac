//! `/jobscheduler/master/api/order`: orders and what happens to them, as their own document writes it.
//!
//! ```text
//!  wanted      of which orders, and what `return` asks for
//!  overview    OrderOverview: where the orders stand, as one snapshot
//!  statistics  OrderStatistics; OrderStatisticsChanged, which is computed when it is asked for
//!  tally       counting orders once for all who want to know
//!  answer      what may be answered, for the description
//! ```
//!
//! A GET has the path in its address, a POST has it in its body; otherwise they are the same. All other things that
//! `return` may name are events, and are answered by the very code of `/api/v1/events`. Here only the engine's own are
//! told of. A token that is bound to a tenant is shown that tenant's orders, the events of those and of its tasks, and
//! numbers that count them alone.

mod answer;
mod overview;
mod statistics;
mod tally;
mod wanted;

use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::Uri;
use pointsman_core::journal::Filter;
use pointsman_core::wire::{Fault, string};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::{Caller, Viewer};
use crate::events::Watch;
use crate::events::seq::{self, Terms};
use crate::problem::Problem;
use crate::query::Query;
use crate::{action, percent};
use answer::OrderAnswer;
use overview::overview;
use statistics::Statistics;
pub(crate) use tally::Tallies;
use wanted::{Return, Wanted};

/// Where all of this lies.
const BASE: &str = "/jobscheduler/master/api/order";

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_all, post_query))
        .routes(routes!(get_some))
        .route(&format!("{BASE}/"), get(get_all).post(post_query))
        .route(&format!("{BASE}/{{*path}}"), axum::routing::post(post_twice))
}

/// All orders: where they stand, what happens to them, or how many there are.
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
        ("limit" = Option<i64>, Query, description = "at most so many events; a negative one reads backwards"),
        ("tenant" = Option<String>, Query, description = "only this tenant's; where the path names one order, `default` if \
            neither this nor the token names one"),
    ),
    responses((status = 200, description = "A snapshot of the orders, their statistics, or an EventSeq", body = OrderAnswer)),
)]
pub(crate) async fn get_all(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    answer(app, caller, &uri, Wanted::everything()).await
}

/// The orders of a folder, a chain or one order: where they stand, what happens to them, or how many there are.
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
pub(crate) async fn get_some(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let wanted = Wanted::read(&path(&uri)).map_err(|bad| Problem::malformed(bad).parameter("path"))?;
    answer(app, caller, &uri, wanted).await
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
pub(crate) async fn post_query(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
    Asked(wanted): Asked,
) -> Result<Response, Problem> {
    answer(app, caller, &uri, wanted).await
}

/// A path in the address and a body that may hold another: nobody can tell which is meant.
async fn post_twice(_: Viewer) -> Problem {
    let detail = format!("with POST the path stands in the body: POST to {BASE}, or use GET");
    Problem::malformed(detail).parameter("path")
}

/// Which orders a POST is about.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "a JSON object with a `path`")]
pub(crate) struct PathQuery {
    #[schema(value_type = Option<String>, example = "/aFolder/")]
    path: Option<Box<RawValue>>,
}

pub(crate) struct Asked(Wanted);

impl FromRequest<App> for Asked {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let PathQuery { path } = action::read(request, app).await?;
        let Some(path) = path else { return Ok(Self(Wanted::everything())) };
        let wanted = Wanted::read(&string("/path", &path)?).map_err(|bad| Fault::new("/path", bad))?;
        Ok(Self(wanted))
    }
}

/// The path that an address ends with.
fn path(uri: &Uri) -> String {
    // What is no path at all, such as nothing, is refused where it is read.
    uri.path().strip_prefix(BASE).and_then(percent::decode).unwrap_or_default()
}

async fn answer(app: App, caller: Caller, uri: &Uri, wanted: Wanted) -> Result<Response, Problem> {
    let known = [&["return", "after", "tenant"], Terms::PARAMETERS.as_slice()].concat();
    let query = Query::of(uri, &known)?;
    let tenant = caller.tenant(query.parse("tenant")?)?;
    match query.read("return", Return::read)?.unwrap_or(Return::Overview) {
        Return::Overview => {
            takes_none(&query, &["after", "timeout", "limit"], "OrderOverview")?;
            overview(&app, &caller, tenant, &wanted).await
        }
        Return::Statistics => {
            takes_none(&query, &["after", "timeout", "limit"], "OrderStatistics")?;
            Ok(Statistics::of(app, caller, tenant, wanted).now().await?.into_response())
        }
        Return::StatisticsChanged => {
            takes_none(&query, &["limit"], "OrderStatisticsChanged")?;
            let after = seq::after(query.parse("after")?)?;
            let timeout = seq::timeout(&query)?;
            let _waiting = (!timeout.is_zero()).then(|| app.streams.open(&caller)).transpose()?;
            Statistics::of(app, caller, tenant, wanted).changed(after, timeout).await
        }
        Return::Events(kinds) => {
            let certain_types = !kinds.is_empty();
            let filter = Filter { kinds, path: wanted.path, key: None, tenant, engine: true };
            let watch = Watch { filter, after: query.parse("after")?, certain_types };
            seq::answer(&app, &caller, watch, &Terms::of(&query)?).await
        }
    }
}

fn takes_none(query: &Query, names: &[&str], what: &str) -> Result<(), Problem> {
    match names.iter().find(|name| query.get(name).is_some()) {
        Some(name) => Err(Problem::malformed(format!("`return={what}` takes no `{name}`")).parameter(*name)),
        None => Ok(()),
    }
}
