//! Health and metrics.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use http::header;
use pointsman_api::{Health, StoreHealth};
use pointsman_core::store::StoreError;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::Viewer;
use crate::problem::Problem;

/// Health checks: open to all, and served on the reserve of connections.
pub(crate) const HEALTH_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(show_metrics))
}

/// How long the store may take to be called reachable.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

fn health_body(status: &str, store: Option<StoreHealth>, warnings: Vec<String>) -> Json<Health> {
    Json(Health { status: status.into(), version: env!("CARGO_PKG_VERSION").into(), store, warnings })
}

/// Problems that do not keep requests from being served.
fn collect_warnings(app: &App) -> Vec<String> {
    app.store().warnings().into_iter().chain(app.engine.clock().warning()).collect()
}

/// Whether the store answers, and soon, and takes what is written; and what is wrong if it does not.
async fn check_store(app: &App) -> (StoreHealth, Option<String>) {
    let read_error = match timeout(STORE_TIMEOUT, app.store().extent()).await {
        Ok(Ok(_)) => None,
        Ok(Err(StoreError::Damaged(_))) => Some("the store is damaged"),
        Ok(Err(StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Closed)) | Err(_) => {
            Some("the store does not answer")
        }
    };
    let write_error = app.store().trouble();
    let (reachable, writable) = (read_error.is_none(), write_error.is_none());
    let error = match (read_error, write_error) {
        (None, None) => None,
        (None, Some(write_error)) => Some(format!("the store cannot be written: {write_error}")),
        (Some(read_error), None) => Some(read_error.into()),
        (Some(read_error), Some(write_error)) => Some(format!("{read_error}, and {write_error}")),
    };
    (StoreHealth { kind: app.store_kind.into(), reachable, writable }, error)
}

/// The process lives and answers, and whether its store does and can be written. A store that does not is no reason to
/// start the process again, so that this is answered with 200 all the same. `warnings` tells what is not as it should be
/// with a store that works, such as settings of a Redis by which it can lose what it has acknowledged, or that it is too
/// full for more.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It does", body = Health)))]
pub(crate) async fn healthz(State(app): State<App>) -> Json<Health> {
    let (store, error) = check_store(&app).await;
    let clock = app.engine.clock().out_of_service_reason();
    let status = if error.is_none() && clock.is_none() { "ok" } else { "degraded" };
    let warnings = clock.into_iter().chain(collect_warnings(&app)).collect();
    health_body(status, Some(store), warnings)
}

/// The process lives and answers.
#[utoipa::path(get, path = "/livez", tag = "health", security(()),
    responses((status = 200, description = "It does", body = Health)))]
pub(crate) async fn livez() -> Json<Health> {
    health_body("ok", None, Vec::new())
}

/// The store answers and can be written, the node's clock agrees with the store's within 30 seconds, and the server is not
/// stopping: send requests here.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "It is ready", body = Health)))]
pub(crate) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if app.stopping.is_cancelled() {
        return Err(Problem::unavailable("the server is stopping"));
    }
    if let Some(reason) = app.engine.clock().out_of_service_reason() {
        return Err(Problem::unavailable(reason));
    }
    let (store, error) = check_store(&app).await;
    match error {
        None => Ok(health_body("ok", Some(store), collect_warnings(&app))),
        Some(error) => Err(Problem::unavailable(error)),
    }
}

/// The node's metrics in the text form of Prometheus. What the store does not tell within two seconds is left out, and
/// `pointsman_backlog_read` is then 0.
#[utoipa::path(get, path = "/show_metrics", tag = "health",
    responses((status = 200, description = "The show_metrics", body = String,
        content_type = "application/openmetrics-text")))]
pub(crate) async fn show_metrics(
    Viewer(caller): Viewer,
    State(app): State<App>,
) -> Result<impl IntoResponse, Problem> {
    caller.unbound("show_metrics count every tenant")?;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let http = app.metrics.encode(app.connections.count(), app.streams.count(), app.responses.used());
    Ok(([(header::CONTENT_TYPE, media)], http + &app.engine.metrics_text().await))
}
