//! `/api/v1/me`: whose token it is, so that a client can show what it may do and leave out what it may not.

use axum::Json;
use http::Uri;
use pointsman_api::MeBody;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::Anyone;
use crate::problem::Problem;
use crate::query::Query;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_me))
}

/// The name, the role and the tenant of the token that the request carries, whatever its role.
#[utoipa::path(
    get,
    path = "/api/v1/me",
    operation_id = "show_me",
    tag = "house",
    responses((status = 200, description = "Whose token it is", body = MeBody)),
)]
pub(crate) async fn show_me(Anyone(caller): Anyone, uri: Uri) -> Result<Json<MeBody>, Problem> {
    Query::from_uri(&uri, &[])?;
    let tenant = caller.tenant.map(|tenant| tenant.to_string());
    Ok(Json(MeBody { name: caller.name, role: caller.role.to_string(), tenant }))
}
