//! `/api/v1/nodes` and `/api/v1/audit`: the nodes of the cluster, and the audit log.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{AuditEntryBody, AuditList, NodeBody, NodeList};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::{Admin, Viewer};
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// Default number of audit entries in a response.
const DEFAULT_AUDIT_LIMIT: usize = 100;
/// Maximum number of audit entries in a response.
const MAX_AUDIT_LIMIT: usize = 1000;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_nodes)).routes(routes!(list_audit_entries))
}

/// The nodes of the cluster: live ones, and those that stopped recently.
#[utoipa::path(
    get,
    path = "/api/v1/nodes",
    operation_id = "list_nodes",
    tag = "administration",
    responses((status = 200, description = "The nodes, newest first", body = NodeList)),
)]
pub(crate) async fn list_nodes(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<NodeList>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    caller.require_access_to_all_tenants("nodes serve every tenant")?;
    let event_id = app.store().read_journal_range().await?.newest_event_id.get();
    let nodes = app.store().list_nodes().await?.iter().map(NodeBody::from).collect();
    Ok(Json(NodeList { newest_event_id: event_id, nodes }))
}

/// The audit log: which token paused, retried, cancelled, … what, when and why.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    operation_id = "read_audit",
    tag = "administration",
    params(
        ("limit" = Option<u16>, Query, description = "1 to 1000, 100 if not given"),
        ("before" = Option<i64>, Query, description = "the `next` of the previous response"),
    ),
    responses((status = 200, description = "The audit entries, newest first", body = AuditList)),
)]
pub(crate) async fn list_audit_entries(
    Admin(caller): Admin,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<AuditList>, Problem> {
    let query = RequestQuery::from_uri(&uri, &["limit", "before"])?;
    caller.require_access_to_all_tenants("the audit covers every tenant")?;
    let limit = query.parse_limit(DEFAULT_AUDIT_LIMIT, MAX_AUDIT_LIMIT)?;
    let before = query.parse_parameter_with("before", |text| {
        text.parse().map_err(|_| "`before` is the `next` of a response")
    })?;
    let event_id = app.store().read_journal_range().await?.newest_event_id.get();
    let entries = app.store().list_audit_entries(before, limit).await?;
    let next = entries.last().map(|(number, _)| *number).filter(|_| entries.len() == limit);
    Ok(Json(AuditList {
        newest_event_id: event_id,
        entries: entries.iter().map(AuditEntryBody::from).collect(),
        next,
    }))
}
