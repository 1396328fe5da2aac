//! Health and metrics.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use http::header;
use pointsman_api::Health;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::Viewer;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
}

fn healthy() -> Json<Health> {
    Json(Health { status: "ok".into(), version: env!("CARGO_PKG_VERSION").into() })
}

/// The process lives and answers.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It does", body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    healthy()
}

/// The process lives and answers.
#[utoipa::path(get, path = "/livez", tag = "health", security(()),
    responses((status = 200, description = "It does", body = Health)))]
pub(crate) async fn livez() -> Json<Health> {
    healthy()
}

/// The store answers, and the server is not stopping: send requests here.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "It is ready", body = Health)))]
pub(crate) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if app.stopping.is_cancelled() {
        return Err(Problem::unavailable("the server is stopping"));
    }
    app.store().extent().await?;
    Ok(healthy())
}

/// The node's metrics in the text form of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "The metrics", body = String,
        content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(
    Viewer(caller): Viewer,
    State(app): State<App>,
) -> Result<impl IntoResponse, Problem> {
    caller.unbound("metrics count every tenant")?;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media)], app.engine.metrics_text().await))
}
