//! `/healthz`, `/livez`, `/readyz` and `/metrics`: health checks and metrics.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use http::header;
use pointsman_api::{HealthBody, StoreHealthBody};
use pointsman_core::store::StoreError;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::Viewer;
use crate::problem::Problem;

/// Paths of the health checks. They need no token and are served on the reserve of connections.
pub(crate) const HEALTH_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(show_metrics))
}

/// A store that does not respond within this time is not reachable.
const STORE_CHECK_TIMEOUT: Duration = Duration::from_secs(1);

fn health_body(status: &str, store: Option<StoreHealthBody>, warnings: Vec<String>) -> Json<HealthBody> {
    Json(HealthBody { status: status.into(), version: env!("CARGO_PKG_VERSION").into(), store, warnings })
}

/// Warnings about conditions under which requests are still served.
fn collect_health_warnings(app: &App) -> Vec<String> {
    app.store().health_warnings().into_iter().chain(app.engine.time_source().clock_warning()).collect()
}

/// Checks that the store responds in time and accepts writes; the second value is the error if it does not.
async fn check_store(app: &App) -> (StoreHealthBody, Option<String>) {
    let read_error = match timeout(STORE_CHECK_TIMEOUT, app.store().read_journal_range()).await {
        Ok(Ok(_)) => None,
        Ok(Err(StoreError::Damaged(_))) => Some("the store is damaged"),
        Ok(Err(StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Closed)) | Err(_) => {
            Some("the store does not respond")
        }
    };
    let write_error = app.store().describe_write_problem();
    let (reachable, writable) = (read_error.is_none(), write_error.is_none());
    let error = match (read_error, write_error) {
        (None, None) => None,
        (None, Some(write_error)) => Some(format!("the store cannot be written: {write_error}")),
        (Some(read_error), None) => Some(read_error.into()),
        (Some(read_error), Some(write_error)) => Some(format!("{read_error}, and {write_error}")),
    };
    (StoreHealthBody { kind: app.store_kind.into(), reachable, writable }, error)
}

/// Health of the process and of its store. Restarting the process does not help against an unavailable store, so this
/// returns 200 in that case too, with `degraded`. `warnings` lists problems of a store that works, such as Redis
/// settings that can lose acknowledged data, or a store that is too full to accept more.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "The process is alive", body = HealthBody)))]
pub(crate) async fn healthz(State(app): State<App>) -> Json<HealthBody> {
    let (store, error) = check_store(&app).await;
    let clock = app.engine.time_source().out_of_service_reason();
    let status = if error.is_none() && clock.is_none() { "ok" } else { "degraded" };
    let warnings = clock.into_iter().chain(collect_health_warnings(&app)).collect();
    health_body(status, Some(store), warnings)
}

/// Liveness of the process alone.
#[utoipa::path(get, path = "/livez", tag = "health", security(()),
    responses((status = 200, description = "The process is alive", body = HealthBody)))]
pub(crate) async fn livez() -> Json<HealthBody> {
    health_body("ok", None, Vec::new())
}

/// Readiness: the store responds and accepts writes, the node's clock is within 30 seconds of the store's, all services
/// run, and the server is not stopping. 503 otherwise.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "The server is ready for requests", body = HealthBody)))]
pub(crate) async fn readyz(State(app): State<App>) -> Result<Json<HealthBody>, Problem> {
    if app.stop_signal.is_cancelled() {
        return Err(Problem::unavailable("the server is stopping"));
    }
    if let Some(failure) = app.engine.service_failure() {
        return Err(Problem::unavailable(failure));
    }
    if let Some(reason) = app.engine.time_source().out_of_service_reason() {
        return Err(Problem::unavailable(reason));
    }
    let (store, error) = check_store(&app).await;
    match error {
        None => Ok(health_body("ok", Some(store), collect_health_warnings(&app))),
        Some(error) => Err(Problem::unavailable(error)),
    }
}

/// The node's metrics in the Prometheus text format. Values that the store does not return within two seconds are left
/// out, and `pointsman_backlog_read` is then 0.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "health",
    responses((status = 200, description = "The metrics", body = String,
        content_type = "application/openmetrics-text")))]
pub(crate) async fn show_metrics(
    Viewer(caller): Viewer,
    State(app): State<App>,
) -> Result<impl IntoResponse, Problem> {
    caller.require_access_to_all_tenants("metrics count every tenant")?;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let http = app.http_metrics.encode_openmetrics(
        app.connection_admission.count_open_connections(),
        app.stream_limiter.count_open_streams(),
        app.response_memory_budget.used_bytes(),
    );
    Ok(([(header::CONTENT_TYPE, media)], http + &app.engine.metrics_text().await))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::to_bytes;
    use http::StatusCode;
    use pointsman_engine::{Engine, Settings, Setup};
    use pointsman_store_conformance::DispatchingStore;
    use pointsman_store_sqlite::Sqlite;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::app_state::AppState;
    use crate::auth::AcceptedTokens;
    use crate::config::ConfigInputs;

    #[tokio::test]
    async fn a_node_whose_service_keeps_failing_is_not_ready() {
        let store = Arc::new(Sqlite::in_memory(pointsman_engine::machine_clock_now()).unwrap());
        let panicking = DispatchingStore::with_hook_before_calls(store, |method| {
            assert_ne!(
                (method, tokio::task::try_id().is_some()),
                ("record_heartbeat", true),
                "a broken service"
            );
        });
        let settings = Settings { sweep_interval: Duration::from_millis(1), ..Settings::default() };
        let engine = Engine::start(panicking, settings, Setup::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let inputs = ConfigInputs { working_dir: folder.path().into(), ..ConfigInputs::default() };
        let stop = CancellationToken::new();
        let app =
            AppState::new(engine.clone(), &inputs.load_config().unwrap(), AcceptedTokens::default(), stop);
        assert!(readyz(State(app.clone())).await.is_ok());
        assert_eq!(engine.wait_for_service_failure().await.service, "rescuer");
        let response = readyz(State(app)).await.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains("service `rescuer` has failed"), "{body}");
        // The process still lives: the program that waits for its end restarts it.
        assert_eq!(livez().await.status, "ok");
        engine.stop(Duration::ZERO).await;
    }
}
