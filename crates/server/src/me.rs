//! `/api/v1/me`: the identity of the request's token, so that a client can show only what the token may do.

use axum::Json;
use http::Uri;
use pointsman_api::CurrentTokenBody;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::AnyCaller;
use crate::problem::Problem;
use crate::request_query::RequestQuery;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_current_token))
}

/// The name, role and tenant of the request's token. Every role may call this.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    operation_id = "show_me",
    tag = "administration",
    responses((status = 200, description = "The token", body = CurrentTokenBody)),
)]
pub(crate) async fn show_current_token(
    AnyCaller(caller): AnyCaller,
    uri: Uri,
) -> Result<Json<CurrentTokenBody>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    let tenant = caller.bound_tenant.map(|tenant| tenant.to_string());
    Ok(Json(CurrentTokenBody { name: caller.token_name, role: caller.role.to_string(), tenant }))
}
